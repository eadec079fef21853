package checkpoint

import "syscall"

// Without MAP_NORESERVE the kernel counts a private map as memory that might
// all be written, and refuses one that is larger than the machine's.
const mapFlags = syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
