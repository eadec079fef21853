// Package pytorch reads the checkpoints that PyTorch has written since 2016,
// without Python and without running any of the code in them.
//
// [Open] reads a file's metadata, its directory and its pickle, and returns a
// [checkpoint.Checkpoint]: a tree of [nested.Value] whose leaves are tensors
// that know their dtype, shape and place and have not been read.
//
//	c, err := pytorch.Open(ctx, "model.pt")
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	for name, t := range c.Tensors() {
//		fmt.Println(name, t.DType(), t.Shape())
//	}
//
// # Containers
//
// The content decides what a file is, never its suffix: zip files of torch 1.6
// and later, those of TorchScript, torch.export and torch.package, the stacked
// pickles before 1.6, the tar files before 0.2, folders that a zip file was
// unpacked into, and gzip, zstd, bzip2 or zip around any of them.
//
// # Security
//
// A checkpoint is a file from a stranger. A pickle is a program, and this
// package runs it on a machine that can only build values: nothing is imported,
// nothing is called. Sizes and offsets are proved against the bytes that exist
// before they are used, and what a file may ask for beyond that is bounded by
// [checkpoint.Limits]. Whatever goes wrong is an error of package [fault] that
// says where and what to do; input never makes this package panic.
package pytorch
