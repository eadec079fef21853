package pytorch

import (
	"slices"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
)

// Graded gives a global, such as one of Info.Globals of an open checkpoint, its
// grade. It is safe for concurrent use.
func Graded(g checkpoint.Global) ScanGlobal {
	grade, reason := gradeOf(g.Module, g.Name)
	return ScanGlobal{Global: g, Grade: grade, Reason: reason}
}

// gradeOf grades a name by the rules of docs/reliability.md, the exact lists first. A
// name of Python 2 is graded as it stands and as Python 3 calls it.
func gradeOf(module, name string) (Grade, string) {
	text := python3Name(module, name)
	if _, ok := torchConstant(name); ok && strings.HasPrefix(module+".", "torch.") {
		return GradeData, "a memory format, which any module of torch knows"
	}
	if reason := knownData(text); reason != "" {
		return GradeData, reason // some lie below a name that is dangerous, such as torch.jit
	}
	for _, spelled := range []string{module + "." + name, text} {
		if reason := danger(spelled); reason != "" {
			return GradeDangerous, reason
		}
	}
	if isListed(weightsOnly, text) {
		return GradeAllowed, "torch.load(weights_only=True) imports it too"
	}
	return GradeUnknown, "no list names it"
}

// isListed looks a full name up in names by module.
func isListed(lists map[string]string, text string) bool {
	dot := strings.LastIndexByte(text, '.')
	if dot < 0 {
		return false
	}
	return slices.Contains(strings.Fields(lists[text[:dot]]), text[dot+1:])
}

// danger says why a full name is dangerous, "" if no rule says so. Protocol 4
// takes dotted names apart, so that torch.serialization.os.system is os.system:
// every part of a name counts, not only the first.
func danger(text string) string {
	parts := strings.Split(text, ".")
	if reason := dangerousModules[parts[0]]; reason != "" {
		return reason
	}
	for name, reason := range dangerousNames {
		if text == name || strings.HasPrefix(text, name+".") {
			return reason
		}
	}
	for _, part := range parts[1:] {
		if slices.Contains(reachable, part) {
			return "reaches " + part + " through another name"
		}
		if strings.HasPrefix(part, "__") && strings.HasSuffix(part, "__") && part != "__main__" {
			return "reaches into the inside of an object"
		}
	}
	return ""
}

// reachable are modules and functions that other modules hold under these
// names.
var reachable = strings.Fields("os sys posix nt subprocess builtins __builtin__ importlib runpy pickle shutil socket ctypes " +
	"eval exec execfile system popen getattr setattr compile")

// The reasons that many share.
const (
	runsCommands = "runs commands"
	runsCode     = "runs Python code that the file brings"
	reachesFiles = "reaches files"
	reachesNet   = "reaches the network"
	loadsPickles = "loads another pickle with everything in it"
	reachesAny   = "reaches any attribute of any object"
	reachesC     = "reaches memory and native code"
)

// dangerousModules are dangerous whatever is taken from them.
var dangerousModules = byReason(map[string]string{
	runsCommands: "os posix nt subprocess pty commands popen2 platform asyncio multiprocessing concurrent signal _posixsubprocess",
	runsCode: "importlib runpy code codeop pip ensurepip venv setuptools distutils pkg_resources pdb bdb trace timeit cProfile profile " +
		"doctest unittest idlelib pydoc imp zipimport pkgutil atexit sched lib2to3 nose pytest",
	reachesFiles: "shutil tempfile glob fileinput io _io posixpath ntpath linecache zipfile tarfile sqlite3 dbm logging",
	reachesNet: "socket _socket ssl webbrowser http httplib urllib urllib2 urllib3 requests httpx aiohttp ftplib smtplib telnetlib poplib " +
		"imaplib nntplib xmlrpc socketserver wsgiref",
	loadsPickles: "pickle _pickle cPickle dill cloudpickle joblib shelve marshal",
	reachesAny:   "sys operator _operator inspect gc",
	reachesC:     "ctypes _ctypes cffi mmap",
})

// dangerousNames are dangerous with everything below them.
var dangerousNames = byReason(map[string]string{
	runsCode: "builtins.eval builtins.exec builtins.execfile builtins.compile builtins.__import__ builtins.__build_class__ builtins.apply " +
		"builtins.breakpoint builtins.input types.FunctionType types.CodeType types.LambdaType types.MethodType types.ModuleType " +
		"torch.jit torch.package torch.compile torch._dynamo torch._inductor torch.utils.cpp_extension torch.ops torch.classes torch.fx " +
		"torch.distributed.rpc torch.testing torch.utils.collect_env torch.utils.bundled_inputs numpy.testing numpy.f2py numpy.distutils " +
		"pandas.eval",
	reachesAny: "builtins.getattr builtins.setattr builtins.delattr builtins.globals builtins.locals builtins.vars builtins.dir",
	reachesFiles: "builtins.open builtins.file numpy.fromfile numpy.loadtxt numpy.genfromtxt numpy.memmap numpy.savetxt torch.save " +
		"torch.from_file",
	reachesNet:   "torch.hub torch.utils.model_zoo",
	loadsPickles: "torch.load torch.serialization.load torch.storage._load_from_bytes torch.multiprocessing numpy.load pandas.read_pickle",
})

// byReason turns lists under a reason into reasons under a name.
func byReason(lists map[string]string) map[string]string {
	reasons := map[string]string{}
	for reason, names := range lists {
		for _, name := range strings.Fields(names) {
			reasons[name] = reason
		}
	}
	return reasons
}

// knownData says why a class or function is known to make data only, "" if it
// is not known.
func knownData(text string) string {
	for reason, lists := range dataClasses {
		if isListed(lists, text) {
			return reason
		}
	}
	if isListed(moduleClasses, text) {
		return "a module of torch.nn, restored by torch's own code"
	}
	return ""
}

// dataClasses are names by module, under the reason why they are known data.
var dataClasses = map[string]map[string]string{
	"a plain value or container of Python": {
		"builtins":    "bool bytes dict float frozenset int list object range slice str tuple Ellipsis NotImplemented",
		"collections": "defaultdict deque",
		"datetime":    "date datetime time timedelta timezone",
		"decimal":     "Decimal", "fractions": "Fraction", "uuid": "UUID",
	},
	"the version of torch, a text": {"torch.torch_version": "TorchVersion"},
	"a path as text, which nothing opens": {
		"pathlib":        "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath",
		"pathlib._local": "Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath",
	},
	"an object with attributes only": {"argparse": "Namespace", "types": "SimpleNamespace"},
	"makes an empty object of a class that is listed itself": {
		"copyreg": "_reconstructor __newobj__ __newobj_ex__",
	},
	"an array, a scalar or a type of NumPy": {
		"numpy":                  "ndarray dtype bool_ float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128",
		"numpy.core.multiarray":  "_reconstruct scalar",
		"numpy._core.multiarray": "_reconstruct scalar",
		"numpy.core.numeric":     "_frombuffer",
		"numpy._core.numeric":    "_frombuffer",
	},
	"a value of TorchScript's own pickles": {
		"torch.jit._pickle": "build_intlist build_tensorlist build_doublelist build_boollist build_tensor_from_id restore_type_tag",
	},
	"rebuilds a tensor from its parts": {
		"torch._utils":                  "_rebuild_sparse_csr_tensor _rebuild_nested_tensor",
		"torch.distributed._tensor.api": "DTensor",
		"torch.distributed.tensor._api": "DTensor",
	},
	"metadata of a distributed checkpoint": {
		"torch.distributed.checkpoint.metadata": "Metadata TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties " +
			"MetadataIndex StorageMeta _MEM_FORMAT_ENCODING",
		"torch.distributed.checkpoint.filesystem": "_StorageInfo",
	},
	"a configuration of OmegaConf": {
		"omegaconf.dictconfig": "DictConfig", "omegaconf.listconfig": "ListConfig",
		"omegaconf.base":  "ContainerMetadata Metadata",
		"omegaconf.nodes": "AnyNode StringNode IntegerNode FloatNode BooleanNode EnumNode BytesNode PathNode",
	},
}
