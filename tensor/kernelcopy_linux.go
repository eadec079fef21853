package tensor

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// blockBytes is the usual size of a page and of a file system's block.
const blockBytes = 4 << 10

// kernelCopy moves as much of a span as it can from file to file inside the
// kernel and returns where the rest starts. What the kernel refuses is moved
// the ordinary way, so its errors are no faults.
//
// It leaves alone what lies differently in the blocks of both files. File systems
// cannot share such blocks, and the kernel then writes each page in two parts
// under the lock of the output: ordinary reads, which need no lock, beside
// ordinary writes take three quarters of the time.
func (w *worker) kernelCopy(s *spanTask) int64 {
	in, out, ok := w.filePair(s)
	if !ok {
		return s.lo
	}
	from, to := s.place(), s.job.to.offset+s.lo-s.base
	if (from-to)%blockBytes != 0 {
		return s.lo
	}
	for lo := s.lo; lo < s.hi; {
		if w.ctx.Err() != nil {
			return lo
		}
		n, err := unix.CopyFileRange(int(in.Fd()), &from, int(out.Fd()), &to, int(s.hi-lo), 0)
		if err != nil || n <= 0 {
			return lo
		}
		lo += int64(n)
		w.run.kernel(int64(n))
	}
	return s.hi
}

// filePair returns both files when the bytes go from one to the other as they
// are and nobody needs to see them.
func (w *worker) filePair(s *spanTask) (in, out *os.File, ok bool) {
	st := s.walk.storage
	if w.run.verify || !s.walk.plain() || st.Order() != LittleEndian && s.walk.dtype.Component() > 1 {
		return nil, nil, false
	}
	in, ok = asFile(st.spec.File)
	if !ok {
		return nil, nil, false
	}
	out, ok = s.job.to.file.(*os.File)
	return in, out, ok
}

// asFile returns the operating system's file behind a reader.
func asFile(r io.ReaderAt) (*os.File, bool) {
	if f, ok := r.(*os.File); ok {
		return f, true
	}
	if f, ok := r.(interface{ OSFile() *os.File }); ok {
		return f.OSFile(), f.OSFile() != nil
	}
	return nil, false
}
