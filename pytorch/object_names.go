package pytorch

// python2Modules are the modules that Python 3 renamed. A pickle of protocol 2
// and below has the old names (CPython, Lib/_compat_pickle.py, IMPORT_MAPPING).
var python2Modules = map[string]string{
	"__builtin__": "builtins", "exceptions": "builtins", "copy_reg": "copyreg", "Queue": "queue",
	"SocketServer": "socketserver", "ConfigParser": "configparser", "repr": "reprlib", "thread": "_thread",
	"dummy_thread": "_dummy_thread", "dbhash": "dbm.bsd", "dumbdbm": "dbm.dumb", "dbm": "dbm.ndbm", "gdbm": "dbm.gnu",
	"anydbm": "dbm", "whichdb": "dbm", "xmlrpclib": "xmlrpc.client", "SimpleXMLRPCServer": "xmlrpc.server",
	"DocXMLRPCServer": "xmlrpc.server", "httplib": "http.client", "Cookie": "http.cookies", "cookielib": "http.cookiejar",
	"BaseHTTPServer": "http.server", "SimpleHTTPServer": "http.server", "CGIHTTPServer": "http.server",
	"htmlentitydefs": "html.entities", "HTMLParser": "html.parser", "markupbase": "_markupbase", "_winreg": "winreg",
	"commands": "subprocess", "urlparse": "urllib.parse", "robotparser": "urllib.robotparser", "urllib2": "urllib.request",
	"_abcoll": "collections.abc", "cPickle": "pickle", "_elementtree": "xml.etree.ElementTree",
	"UserDict": "collections", "UserList": "collections", "UserString": "collections", "StringIO": "io", "cStringIO": "io",
	"Tkinter": "tkinter", "Tix": "tkinter.tix", "ttk": "tkinter.ttk", "Dialog": "tkinter.dialog",
	"FileDialog": "tkinter.filedialog", "tkFileDialog": "tkinter.filedialog", "SimpleDialog": "tkinter.simpledialog",
	"tkSimpleDialog": "tkinter.simpledialog", "tkColorChooser": "tkinter.colorchooser", "tkCommonDialog": "tkinter.commondialog",
	"tkMessageBox": "tkinter.messagebox", "tkFont": "tkinter.font", "Tkdnd": "tkinter.dnd", "Tkconstants": "tkinter.constants",
	"ScrolledText": "tkinter.scrolledtext", "test.test_support": "test.support",
}

// python2Names are the names that moved to another module or changed (the same
// file, NAME_MAPPING).
var python2Names = map[string]string{
	"__builtin__.xrange": "builtins.range", "__builtin__.reduce": "functools.reduce", "__builtin__.intern": "sys.intern",
	"__builtin__.unichr": "builtins.chr", "__builtin__.unicode": "builtins.str", "__builtin__.long": "builtins.int",
	"__builtin__.basestring": "builtins.str", "exceptions.StandardError": "builtins.Exception",
	"itertools.izip": "builtins.zip", "itertools.imap": "builtins.map", "itertools.ifilter": "builtins.filter",
	"itertools.ifilterfalse": "itertools.filterfalse", "itertools.izip_longest": "itertools.zip_longest",
	"UserDict.IterableUserDict": "collections.UserDict", "socket._socketobject": "socket.SocketType",
	"_socket.fromfd": "socket.fromfd", "_multiprocessing.Connection": "multiprocessing.connection.Connection",
	"multiprocessing.process.Process": "multiprocessing.context.Process", "multiprocessing.forking.Popen": "multiprocessing.popen_fork.Popen",
	"multiprocessing.AuthenticationError": "multiprocessing.context.AuthenticationError",
	"multiprocessing.BufferTooShort":      "multiprocessing.context.BufferTooShort",
	"multiprocessing.ProcessError":        "multiprocessing.context.ProcessError",
	"multiprocessing.TimeoutError":        "multiprocessing.context.TimeoutError",
	"urllib.ContentTooShortError":         "urllib.error.ContentTooShortError", "urllib2.HTTPError": "urllib.error.HTTPError",
	"urllib2.URLError": "urllib.error.URLError", "urllib.getproxies": "urllib.request.getproxies",
	"urllib.pathname2url": "urllib.request.pathname2url", "urllib.url2pathname": "urllib.request.url2pathname",
	"urllib.urlcleanup": "urllib.request.urlcleanup", "urllib.urlopen": "urllib.request.urlopen",
	"urllib.urlretrieve": "urllib.request.urlretrieve", "urllib.quote": "urllib.parse.quote", "urllib.quote_plus": "urllib.parse.quote_plus",
	"urllib.unquote": "urllib.parse.unquote", "urllib.unquote_plus": "urllib.parse.unquote_plus", "urllib.urlencode": "urllib.parse.urlencode",
}

// python3Name returns module.Name as Python 3 calls it. Python 3 writes the old
// names too, up to protocol 2, and maps them back when it reads.
func python3Name(module, name string) string {
	if now, ok := python2Names[module+"."+name]; ok {
		return now
	}
	if now, ok := python2Modules[module]; ok {
		module = now
	}
	return module + "." + name
}
