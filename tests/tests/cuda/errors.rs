//! Names of results.

use contigo::{Error, cuda::code_name};

#[test]
fn results_have_the_names_of_cuda_h() {
    for (code, name) in [
        (0, "CUDA_SUCCESS"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY"),
        (218, "CUDA_ERROR_INVALID_PTX"),
        (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
        (999, "CUDA_ERROR_UNKNOWN"),
    ] {
        assert_eq!(code_name(code), name);
    }
    for code in [-1, 9, 1_000, i32::MAX, i32::MIN] {
        assert!(code_name(code).starts_with("an error that cuda.h"), "{code}");
    }
    let error = Error::Cuda { call: "cuInit", code: 100, name: code_name(100) };
    assert_eq!(error.to_string(), "cuInit: CUDA_ERROR_NO_DEVICE (100)");
}
