// Package models turns the providers of the settings into a chain that agents call, with
// the catalogue of what each model costs and accepts.
package models
