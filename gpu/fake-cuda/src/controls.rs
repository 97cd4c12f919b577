//! How a test finds the library, sets it, and reads its counters.

use crate::{Config, Counters};
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, mem};

const FILE: &str = "libfake_cuda.so";

/// The library that belongs to the program that runs: cargo puts it into `deps/` beside a test's
/// own executable, for the same target.
#[must_use]
pub fn library() -> PathBuf {
    let beside =
        env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from)).unwrap_or_default();
    // Tests and benches are in deps/, programs beside it, examples in examples/.
    let places =
        [beside.join(FILE), beside.join("deps").join(FILE), beside.join("../deps").join(FILE)];
    places.iter().find(|place| place.exists()).unwrap_or(&places[0]).clone()
}

/// The loaded library's extra functions. Its state is one for the whole process: the owner of
/// `Controls` has it alone, and other tests of the same program wait in [`Controls::take`].
#[derive(Debug)]
pub struct Controls {
    configure: Configure,
    read: Read,
    _alone: MutexGuard<'static, ()>,
}

type Configure = unsafe extern "C" fn(Option<&Config>, usize) -> c_int;
type Read = unsafe extern "C" fn(Option<&mut Counters>, usize) -> c_int;

static ALONE: Mutex<()> = Mutex::new(());

#[allow(clippy::expect_used, clippy::panic, reason = "without its library a test has failed")]
impl Controls {
    /// Waits for other tests of this program, loads [`library`], and sets it to `config`. Its live
    /// objects are forgotten: they count for nothing, their handles are no handles, and pinned
    /// memory stays mapped.
    ///
    /// # Panics
    ///
    /// Without the library, and for a configuration that is none.
    #[must_use]
    pub fn take(config: &Config) -> Self {
        // A test that failed left nothing that the configuration does not set.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = library();
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path without NUL");
        // SAFETY: a C string; the library has only the standard library's initialisers.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} does not load", path.display());
        let [configure, read] =
            [c"fake_cuda_configure", c"fake_cuda_counters"].map(|name| symbol(handle, name));
        // SAFETY: the library was built from this source and never unloads, and these are the types
        // of the two functions in `exports`.
        let controls = unsafe {
            Self {
                configure: mem::transmute::<*mut c_void, Configure>(configure),
                read: mem::transmute::<*mut c_void, Read>(read),
                _alone: alone,
            }
        };
        controls.configure(config);
        controls
    }

    /// Sets the library to `config`, as [`Controls::take`] does.
    ///
    /// # Panics
    ///
    /// For a configuration that is none.
    pub fn configure(&self, config: &Config) {
        // SAFETY: the library's own function with a valid configuration; it compares the size.
        let answer = unsafe { (self.configure)(Some(config), size_of::<Config>()) };
        assert_eq!(answer, 0, "refused: {config:?}");
    }

    /// The live objects and the counted calls.
    ///
    /// # Panics
    ///
    /// With a library of another build.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::new();
        // SAFETY: the library's own function with room for what it writes; it compares the size.
        let answer = unsafe { (self.read)(Some(&mut counters), size_of::<Counters>()) };
        assert_eq!(answer, 0, "another build's library");
        counters
    }
}

#[allow(clippy::panic, reason = "without its library a test has failed")]
fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle that dlopen answered, and a C string.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!symbol.is_null(), "no {name:?} in the library");
    symbol
}
