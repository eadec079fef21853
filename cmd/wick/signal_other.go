//go:build !unix

package main

// ignoreBrokenPipe has nothing to do where a broken pipe is no signal.
func ignoreBrokenPipe() {}
