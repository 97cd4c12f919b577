//! OpenCL's answers as errors of the runtime. This is the one place where one becomes the other.

use cl3::error_codes::{
    DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED, cl_int, error_text,
};
use cl3::ext::CL_PLATFORM_NOT_FOUND_KHR;
use contigo::{Error, Result};

/// The error of `call`, which answered `code`. The names are those of `CL/cl.h` and `CL/cl_ext.h`,
/// by the binding's table.
pub(super) const fn error(call: &'static str, code: cl_int) -> Error {
    match code {
        DLOPEN_RUNTIME_LOAD_FAILED => Error::NoLibrary {
            name: "libOpenCL.so.1",
            fix: "install OpenCL's loader (ocl-icd-libopencl1), and the driver of the GPU",
        },
        DLOPEN_FUNCTION_NOT_AVAILABLE => Error::Unsupported {
            what: call,
            fix: "update OpenCL's loader and the GPU's driver, which lack this function",
        },
        code => Error::Gpu { call, code, name: error_text(code) },
    }
}

/// As `error`, of a call that answers with a result.
pub(super) fn check<T>(call: &'static str, result: Result<T, cl_int>) -> Result<T> {
    result.map_err(|code| error(call, code))
}

/// Does this code say that the loader found no driver at all (`cl_khr_icd`)?
pub(super) const fn is_no_platform(code: cl_int) -> bool {
    code == CL_PLATFORM_NOT_FOUND_KHR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_name() {
        let shown = |code| error("clCreateBuffer", code).to_string();
        assert_eq!(shown(-13), "clCreateBuffer: CL_MISALIGNED_SUB_BUFFER_OFFSET (-13)");
        assert_eq!(shown(-38), "clCreateBuffer: CL_INVALID_MEM_OBJECT (-38)");
        assert_eq!(shown(-5), "clCreateBuffer: CL_OUT_OF_RESOURCES (-5)");
        assert!(matches!(error("clCreateBuffer", -9_999), Error::Gpu { code: -9_999, .. }));
        assert!(matches!(
            error("clCreateBuffer", -2_000),
            Error::NoLibrary { name: "libOpenCL.so.1", .. }
        ));
        assert!(matches!(
            error("clCreateBuffer", -2_001),
            Error::Unsupported { what: "clCreateBuffer", .. }
        ));
        assert!(is_no_platform(-1001) && !is_no_platform(0));
    }
}
