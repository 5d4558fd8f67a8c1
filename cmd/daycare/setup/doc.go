// Package setup is the commands that set a workspace up: init, auth, providers, models,
// connectors and service.
package setup
