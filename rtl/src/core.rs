#![allow(unsafe_code, reason = "cores are C++: six functions each, which build.rs lists")]
//! A core that Verilator compiled.

use crate::ports::{In, Out, Shape};
use crate::trace::Marks;
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::{fmt, io};

/// A core's state, which C++ owns.
#[repr(C)]
struct Sim {
    _private: [u8; 0],
}

/// The functions of one core (`shim/shim.cpp`).
#[derive(Clone, Copy)]
struct Functions {
    new: unsafe extern "C" fn(u32) -> *mut Sim,
    free: unsafe extern "C" fn(*mut Sim),
    shape: unsafe extern "C" fn(*const Sim, *mut Shape),
    step: unsafe extern "C" fn(*mut Sim, *const In, *mut Out),
    trace: unsafe extern "C" fn(*mut Sim, *const c_char) -> bool,
    mark: unsafe extern "C" fn(*mut Sim, u64, u64, *const u32),
}

include!(concat!(env!("OUT_DIR"), "/cores.rs"));

/// Registers that a reset does not set hold something after power-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOn {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// Chance, from this seed.
    Random(u16),
}

/// The reason why a core cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCore {
    /// It was not built.
    NotBuilt {
        /// Its name.
        name: &'static str,
        /// What was missing.
        why: &'static str,
    },
    /// No core has this name.
    Unknown,
}

impl fmt::Display for NoCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt { name, why } => write!(f, "core {name} was not built: {why}"),
            Self::Unknown => {
                f.write_str("no core has this name; rtl/build/cores.rs lists them:")?;
                CORES.iter().try_for_each(|(name, _)| write!(f, " {name}"))
            }
        }
    }
}

impl std::error::Error for NoCore {}

/// A core that Verilator compiled. It has a clock, and nothing of the board.
pub struct Core {
    name: &'static str,
    functions: Functions,
    sim: NonNull<Sim>,
    shape: Shape,
}

// SAFETY: each has a `VerilatedContext` of its own. Verilator keeps the last one of each thread and
// of the program: the shim sets both, under a lock, before it uses them and when one goes.
unsafe impl Send for Core {}

impl Core {
    /// The core of this name, after power-on and before its reset.
    ///
    /// # Errors
    /// [`NoCore`].
    pub fn open(name: &str, power_on: PowerOn) -> Result<Self, NoCore> {
        let &(name, functions) =
            CORES.iter().find(|(known, _)| *known == name).ok_or(NoCore::Unknown)?;
        let functions = functions.map_err(|why| NoCore::NotBuilt { name, why })?;
        let fill = match power_on {
            PowerOn::Zeros => 0,
            PowerOn::Ones => 1,
            PowerOn::Random(seed) => 2 + u32::from(seed),
        };
        // SAFETY: it takes any number.
        let sim = NonNull::new(unsafe { (functions.new)(fill) })
            .ok_or(NoCore::NotBuilt { name, why: "no memory" })?;
        let mut shape = Shape::default();
        // SAFETY: `sim` is what this core's `new` gave, and `shape` has the layout of ports.h.
        unsafe { (functions.shape)(sim.as_ptr(), &raw mut shape) };
        Ok(Self { name, functions, sim, shape })
    }

    /// The names of all cores, also of those that were not built.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CORES.iter().map(|(name, _)| *name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The ports that it has.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Writes every signal of the core into a new file, as VCD, from here on. The runtime's are
    /// beside them ([`Marks`]).
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn trace(&mut self, path: &Path) -> io::Result<()> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: `sim` is what this core's `new` gave, and C++ keeps nothing of the name.
        let opened = unsafe { (self.functions.trace)(self.sim.as_ptr(), name.as_ptr()) };
        if opened { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The time of the next cycle in a trace, and the runtime beside it. Times rise.
    pub fn mark(&mut self, now_ps: u64, half_ps: u64, marks: &Marks) {
        let words = marks.words();
        // SAFETY: `sim` is what this core's `new` gave, and ports.h has as many names as there are
        // words.
        unsafe { (self.functions.mark)(self.sim.as_ptr(), now_ps, half_ps, words.as_ptr()) };
    }

    /// One cycle: the core sees `inputs`, the outputs are as they stand before the clock's edge.
    /// So a transfer is a channel whose valid and ready are both 1 in these two.
    pub fn step(&mut self, inputs: &In) -> Out {
        let mut out = Out::default();
        // SAFETY: `sim` is what this core's `new` gave, no other code steps it (`&mut self`),
        // and both structs have the layout of ports.h.
        unsafe { (self.functions.step)(self.sim.as_ptr(), inputs, &raw mut out) };
        out
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: `sim` is what this core's `new` gave, and no code uses it after this.
        unsafe { (self.functions.free)(self.sim.as_ptr()) };
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("name", &self.name)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
