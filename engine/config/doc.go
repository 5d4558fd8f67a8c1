// Package config reads settings.yaml, auth.json and the environment into one immutable Config. No
// other package imports viper.
//
// The structs below are the schema. engine/form reads the file by their tags and reports everything
// that is wrong with line and column; the valid rest goes to viper, which applies the environment
// (DAYCARE_LOG_LEVEL=debug) on top.
//
// To add a setting: a field here, its default in Default, a line in settings.example.yaml (a test
// compares the three).
package config
