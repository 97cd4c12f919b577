//! The part of NVTX 3 that a program without its headers needs. The numbers are from `nvtxTypes.h`
//! and `nvToolsExt.h` of NVTX 3 (CUDA 12.9 and 13.5); `tests/header.rs` compares them.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `NVTX_VERSION`: of the header's interface.
pub(crate) const VERSION: u16 = 3;
/// `NVTX_ETID_CALLBACKS`: the table with `GetModuleFunctionTable`.
pub(crate) const ETID_CALLBACKS: u32 = 1;
/// `NVTX_ETID_VERSIONINFO`: the table with the version.
pub(crate) const ETID_VERSIONINFO: u32 = 3;

/// How many functions each module has, slot 0 included, which is none: `NVTX_CBID_…_SIZE`. The
/// modules are numbered as in `NvtxCallbackModule`: none, core, CUDA, OpenCL, CUDA's runtime, core
/// 2, sync.
pub(crate) const MODULES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];
/// `NVTX_CB_MODULE_CORE2`: the functions with a domain.
pub(crate) const MODULE_CORE2: usize = 5;

/// Slots of the module core 2: `NVTX_CBID_CORE2_…`.
pub(crate) mod core2 {
    pub(crate) const DOMAIN_MARK_EX: usize = 1;
    pub(crate) const DOMAIN_RANGE_START_EX: usize = 2;
    pub(crate) const DOMAIN_RANGE_END: usize = 3;
    pub(crate) const DOMAIN_RANGE_PUSH_EX: usize = 4;
    pub(crate) const DOMAIN_RANGE_POP: usize = 5;
    pub(crate) const DOMAIN_CREATE_A: usize = 12;
}

/// `NVTX_COLOR_ARGB`.
pub(crate) const COLOR_ARGB: i32 = 1;
/// `NVTX_PAYLOAD_TYPE_UNSIGNED_INT64`.
pub(crate) const PAYLOAD_TYPE_UNSIGNED_INT64: i32 = 1;
/// `NVTX_MESSAGE_TYPE_ASCII`.
pub(crate) const MESSAGE_TYPE_ASCII: i32 = 1;

/// `nvtxEventAttributes_t`. A type of 0 says that its field is not used.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct EventAttributes {
    pub(crate) version: u16,
    pub(crate) size: u16,
    pub(crate) category: u32,
    pub(crate) color_type: i32,
    pub(crate) color: u32,
    pub(crate) payload_type: i32,
    pub(crate) reserved0: i32,
    pub(crate) payload: u64,
    pub(crate) message_type: i32,
    pub(crate) message: *const c_char,
}

/// `nvtxDomainHandle_t`: the tool's.
pub(crate) type Domain = *mut c_void;
/// `nvtxRangeId_t`: the tool's.
pub(crate) type RangeId = u64;

pub(crate) type DomainCreateA = unsafe extern "C" fn(*const c_char) -> Domain;
pub(crate) type DomainMarkEx = unsafe extern "C" fn(Domain, *const EventAttributes);
pub(crate) type DomainRangeStartEx =
    unsafe extern "C" fn(Domain, *const EventAttributes) -> RangeId;
pub(crate) type DomainRangeEnd = unsafe extern "C" fn(Domain, RangeId);
pub(crate) type DomainRangePushEx = unsafe extern "C" fn(Domain, *const EventAttributes) -> c_int;
pub(crate) type DomainRangePop = unsafe extern "C" fn(Domain) -> c_int;

/// `NvtxFunctionTable`: an array of pointers to slots, into which the tool writes functions.
pub(crate) type FunctionTable = *const *mut c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ExportTableCallbacks {
    pub(crate) struct_size: usize,
    pub(crate) get_module_function_table:
        unsafe extern "C" fn(c_uint, *mut FunctionTable, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ExportTableVersionInfo {
    pub(crate) struct_size: usize,
    pub(crate) version: u32,
    pub(crate) reserved0: u32,
    pub(crate) set_injection_nvtx_version: unsafe extern "C" fn(u32),
}

/// `NvtxGetExportTableFunc_t`.
pub(crate) type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;
/// `NvtxInitializeInjectionNvtxFunc_t`: what the tool exports.
pub(crate) type InitializeInjection = unsafe extern "C" fn(GetExportTable) -> c_int;
