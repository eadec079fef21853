//go:build !unix || aix || solaris

package tensor

// systemHas cannot ask.
func systemHas(int64) bool { return true }
