//go:build !linux

package tensor

// adviseHuge does nothing on systems without such advice.
func adviseHuge([]byte) {}
