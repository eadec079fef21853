//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package checkpoint

import "os"

// Without locks nobody can tell a leftover from a file that is being written:
// nothing is removed.

func lock(*os.File) bool { return true }

func removeIfAbandoned(string) {}

func syncFolder(string) error { return nil }

func isFull(error) bool { return false }
