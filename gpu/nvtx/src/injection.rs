#![allow(
    unsafe_code,
    reason = "a library is loaded, writes functions into a table, and they are called"
)]
//! The tool's library, loaded, and its functions.
//!
//! The steps are those of `nvtxInitializeInjectionLibrary` in `nvtxInit.h`, as far as its variable
//! goes. Its other ways need a tool in the program itself, Android, or CUDA's driver.

use crate::abi::{
    Domain, DomainCreateA, DomainMarkEx, DomainRangeEnd, DomainRangePop, DomainRangePushEx,
    DomainRangeStartEx, ETID_CALLBACKS, ETID_VERSIONINFO, EventAttributes, ExportTableCallbacks,
    ExportTableVersionInfo, FunctionTable, InitializeInjection, MODULE_CORE2, MODULES, RangeId,
    VERSION, core2,
};
use libloading::Library;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::LazyLock;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, fmt, mem, ptr};

/// The variable that names the tool's library.
pub(crate) const VARIABLE: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};
/// The value that asks for no tool (`nvtxInit.h`).
const NO_TOOL: &str = "./.";

/// Why no tool hears the events. The program can go on without.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The variable names a file that cannot be loaded; the loader's words.
    NotLoaded(String),
    /// The library has no function `InitializeInjectionNvtx2`: it is no tool for NVTX.
    NoTool,
    /// The tool attached itself to nothing: its function answered 0.
    Refused,
    /// The program has set a listener before.
    AnotherListens,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoaded(why) => {
                write!(f, "{VARIABLE}: the tool's library cannot be loaded: {why}")
            }
            Self::NoTool => write!(
                f,
                "{VARIABLE}: this library is no tool for NVTX: it lacks InitializeInjectionNvtx2"
            ),
            Self::Refused => write!(f, "{VARIABLE}: the tool did not attach"),
            Self::AnotherListens => f.write_str(
                "the runtime's events have another listener: hand them on to contigo_nvtx::Ranges",
            ),
        }
    }
}

impl std::error::Error for Error {}

/// One module's functions, as the tool sees them. Nothing here is a `Box`: the tool writes through
/// the addresses in the table, and a box that is moved counts as the only way to its slots.
#[derive(Debug)]
struct Module {
    slots: &'static [AtomicPtr<c_void>],
    /// The addresses of the slots: none for slot 0, and none behind the last.
    table: &'static [AtomicPtr<c_void>],
}

/// All of them. They stay for as long as the program runs: the tool may write into them later.
static SLOTS: LazyLock<[Module; MODULES.len()]> = LazyLock::new(|| MODULES.map(Module::new));

impl Module {
    fn new(size: usize) -> Self {
        let slots: &[_] = Vec::leak((0..size).map(|_| AtomicPtr::new(ptr::null_mut())).collect());
        let address = |slot: &AtomicPtr<c_void>| AtomicPtr::new(slot.as_ptr().cast());
        let none = || AtomicPtr::new(ptr::null_mut());
        let table =
            std::iter::once(none()).chain(slots.iter().skip(1).map(address)).chain([none()]);
        Self { slots, table: Vec::leak(table.collect()) }
    }
}

/// `NvtxExportTableCallbacks::GetModuleFunctionTable`: 1 and the table of a module, or 0.
unsafe extern "C" fn get_module_function_table(
    module: c_uint,
    table: *mut FunctionTable,
    size: *mut c_uint,
) -> c_int {
    let Some(found) = SLOTS.get(module as usize).filter(|found| !found.slots.is_empty()) else {
        return 0;
    };
    // SAFETY: the tool gives places of its own, or null.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = c_uint::try_from(found.slots.len()).unwrap_or(0);
    }
    // SAFETY: as above.
    if let Some(table) = unsafe { table.as_mut() } {
        // An `AtomicPtr` has the layout of its pointer.
        *table = found.table.as_ptr().cast();
    }
    1
}

/// The tool may say which version it is of.
const unsafe extern "C" fn set_injection_nvtx_version(_version: u32) {}

/// `NvtxGetExportTableFunc_t`.
unsafe extern "C" fn get_export_table(id: u32) -> *const c_void {
    static CALLBACKS: ExportTableCallbacks = ExportTableCallbacks {
        struct_size: size_of::<ExportTableCallbacks>(),
        get_module_function_table,
    };
    static VERSION_INFO: ExportTableVersionInfo = ExportTableVersionInfo {
        struct_size: size_of::<ExportTableVersionInfo>(),
        version: VERSION as u32,
        reserved0: 0,
        set_injection_nvtx_version,
    };
    match id {
        ETID_CALLBACKS => (&raw const CALLBACKS).cast(),
        ETID_VERSIONINFO => (&raw const VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// Loads the tool that the variable names and lets it attach. `false`: it names none.
pub(crate) fn attach() -> Result<bool, Error> {
    // A program with more rights than its user loads nothing that its user names.
    // SAFETY: it reads a number.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return Ok(false);
    }
    let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty() && path != NO_TOOL)
    else {
        return Ok(false);
    };
    // SAFETY: the user names the library to have it run in this program: that is what the variable
    // is for.
    let library = unsafe { Library::new(path) }.map_err(|error| Error::NotLoaded(words(&error)))?;
    // SAFETY: the function of this name has this type in every tool for NVTX 2 and 3.
    let initialize = unsafe { library.get::<InitializeInjection>(b"InitializeInjectionNvtx2\0") }
        .map_err(|_| Error::NoTool)?;
    // SAFETY: as above; the tables live as long as the program.
    if unsafe { initialize(get_export_table) } == 0 {
        return Err(Error::Refused);
    }
    // Its functions are called until the program ends.
    mem::forget(library);
    Ok(true)
}

/// The loader's own words, with the file's name.
fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The function that the tool has put into a slot of core 2, of type `F`.
///
/// # Safety
/// `F` is the type of that slot's function.
unsafe fn function<F: Copy>(slot: usize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function") };
    let found = SLOTS.get(MODULE_CORE2)?.slots.get(slot)?.load(Relaxed);
    // SAFETY: of one size, as asserted; not null, so that it is a function of the tool's, whose
    // type the caller knows.
    (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
}

/// A domain of the tool's, by its name; null where the tool has no domains.
pub(crate) fn create_domain(name: &CStr) -> Domain {
    // SAFETY: the slot's type; the text ends with a null.
    unsafe {
        function::<DomainCreateA>(core2::DOMAIN_CREATE_A)
            .map_or(ptr::null_mut(), |create| create(name.as_ptr()))
    }
}

/// Says that something happened.
pub(crate) fn mark(domain: Domain, what: &EventAttributes) {
    // SAFETY: the slot's type; `domain` is the tool's.
    if let Some(mark) = unsafe { function::<DomainMarkEx>(core2::DOMAIN_MARK_EX) } {
        // SAFETY: as above.
        unsafe { mark(domain, what) }
    }
}

/// Begins a range of this thread.
pub(crate) fn push(domain: Domain, what: &EventAttributes) {
    // SAFETY: the slot's type; `domain` is the tool's.
    if let Some(push) = unsafe { function::<DomainRangePushEx>(core2::DOMAIN_RANGE_PUSH_EX) } {
        // SAFETY: as above. It answers with the depth, which the tool counts.
        unsafe { push(domain, what) };
    }
}

/// Ends the range that this thread began last.
pub(crate) fn pop(domain: Domain) {
    // SAFETY: the slot's type; `domain` is the tool's.
    if let Some(pop) = unsafe { function::<DomainRangePop>(core2::DOMAIN_RANGE_POP) } {
        // SAFETY: as above.
        unsafe { pop(domain) };
    }
}

/// Begins a range that any thread may end.
pub(crate) fn start(domain: Domain, what: &EventAttributes) -> RangeId {
    // SAFETY: the slot's type; `domain` is the tool's.
    unsafe {
        function::<DomainRangeStartEx>(core2::DOMAIN_RANGE_START_EX)
            .map_or(0, |start| start(domain, what))
    }
}

/// Ends it.
pub(crate) fn end(domain: Domain, id: RangeId) {
    // SAFETY: the slot's type; `domain` and `id` are the tool's.
    if let Some(end) = unsafe { function::<DomainRangeEnd>(core2::DOMAIN_RANGE_END) } {
        // SAFETY: as above.
        unsafe { end(domain, id) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    static POPPED: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn popped(_: Domain) -> c_int {
        c_int::try_from(POPPED.fetch_add(1, Relaxed)).unwrap()
    }

    /// As `InitializeInjectionNvtx2` of a tool does: it asks for a table, and writes a function
    /// through the pointers there.
    #[test]
    fn a_tool_writes_a_function_and_it_is_called() {
        pop(ptr::null_mut());
        assert_eq!(POPPED.load(Relaxed), 0, "no tool");
        let (mut table, mut size) = (ptr::null(), 0);
        // SAFETY: the table of callbacks has that type; both places are this test's. A slot is this
        // test's to write, with a function of its type.
        unsafe {
            let callbacks =
                get_export_table(ETID_CALLBACKS).cast::<ExportTableCallbacks>().as_ref().unwrap();
            let module = c_uint::try_from(MODULE_CORE2).unwrap();
            assert_eq!(
                (callbacks.get_module_function_table)(module, &raw mut table, &raw mut size),
                1
            );
            assert_eq!(size as usize, MODULES[MODULE_CORE2]);
            let slot = table.add(core2::DOMAIN_RANGE_POP).read().cast::<Option<DomainRangePop>>();
            slot.write(Some(popped));
        }
        pop(ptr::null_mut());
        assert_eq!(POPPED.load(Relaxed), 1);
    }
}
