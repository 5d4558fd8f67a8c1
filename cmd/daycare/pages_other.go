//go:build !linux

package main

// dropPages is for Linux.
func dropPages() {}
