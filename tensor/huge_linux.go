package tensor

import "golang.org/x/sys/unix"

// hugePage is the usual size of a transparent huge page.
const hugePage = 2 << 20

// adviseHuge asks for huge pages under the aligned inside of b. It is advice:
// a kernel that refuses costs time, not correctness, so its error is dropped.
func adviseHuge(b []byte) {
	if len(b) < 2*hugePage {
		return
	}
	skip := misalignment(b, hugePage)
	if n := (int64(len(b)) - skip) &^ (hugePage - 1); n > 0 {
		_ = unix.Madvise(b[skip:skip+n], unix.MADV_HUGEPAGE)
	}
}
