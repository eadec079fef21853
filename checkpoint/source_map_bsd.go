//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package checkpoint

import "syscall"

const mapFlags = syscall.MAP_PRIVATE
