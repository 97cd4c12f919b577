//! Refusals of the driver, and things that are not there. Each has its code, and the text has the
//! CUDA code with its name.

use super::*;
use fake_cuda::code;

/// Everything that may be asked for first is refused so.
#[track_caller]
fn all_refused(code: contigo_status, word: &str) {
    refused(try_port(c"cuda").0, code, word);
    refused(try_port(c"cuda:0").0, code, word);
    refused(try_pinned(0, &region_options(0)), code, word);
    refused(try_region(c"cuda", &region_options(0)), code, word);
    refused(unsafe { contigo_region_open(c"cuda".as_ptr(), 4096, &mut 0) }, code, word);
}

#[test]
fn no_driver() {
    without_a_driver(|| {
        all_refused(CONTIGO_E_NO_LIBRARY, "libcuda.so.1 cannot be loaded: install NVIDIA's driver");
        // Everything else is as ever.
        let board = Board::new();
        let operands = board.operands();
        ok(wait(board.start(&operands), 20_000));
        release_all(&operands);
        board.close();
    });
}

#[test]
fn a_driver_that_is_too_old() {
    alone(&Config { driver_version: 10_010, ..Config::default() }, |_| {
        all_refused(
            CONTIGO_E_SETTING,
            "cuDriverGetVersion is 10010: CUDA 10.2 (10020) is the oldest driver",
        );
    });
}

#[test]
fn no_gpu_and_then_there_is_one() {
    alone(&Config::default().with_devices(0, Device::default()), |controls| {
        all_refused(CONTIGO_E_CUDA, "cuInit: CUDA_ERROR_NO_DEVICE (100)");
        // A failure is not kept.
        controls.configure(&Config::default());
        close(gpu(0));
        clean(controls, 1);
    });
}

#[test]
fn a_gpu_that_does_not_exist() {
    let mut config = two();
    config.devices[1].can_map_host_memory = false;
    alone(&config, |controls| {
        for ordinal in [2, CONTIGO_MAX_GPUS, u32::MAX] {
            let word = format!("the GPU's ordinal is {ordinal}: it must be between 0 and 1");
            refused(try_pinned(ordinal, &region_options(0)), CONTIGO_E_ARGUMENT, &word);
            assert!(last_error().ends_with("and 1"), "the last GPU's: {}", last_error());
            let (status, port) = try_port(&named(&format!("cuda:{ordinal}")));
            refused(status, CONTIGO_E_ARGUMENT, &word);
            assert_eq!(port, 1);
        }
        for name in ["cuda:", "cuda:x", "cuda:-1", "cuda1", "cuda:4294967296"] {
            refused(try_port(&named(name)).0, CONTIGO_E_NOT_FOUND, "no port is called that");
        }
        // It exists, and cannot use the CPU's memory.
        refused(try_pinned(1, &region_options(0)), CONTIGO_E_UNSUPPORTED, "use another one");
        ok(contigo_region_close(pinned(0, &region_options(0))));
        clean(controls, 1);
    });
}

#[test]
fn memory_that_the_driver_does_not_give() {
    let config = Config { pinned_limit_bytes: 4 << 20, ..Config::default() };
    alone(&config, |controls| {
        let with = |len_bytes| contigo_region_options { len_bytes, ..region_options(0) };
        let first = pinned(0, &with(3 << 20));
        refused(
            try_pinned(0, &with(3 << 20)),
            CONTIGO_E_CUDA,
            "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)",
        );
        ok(contigo_region_close(first));
        ok(contigo_region_close(pinned(0, &with(3 << 20))));
        for len_bytes in [0, usize::MAX] {
            refused(try_pinned(0, &with(len_bytes)), CONTIGO_E_ARGUMENT, "len_bytes");
        }
        let good = region_options(0);
        refused(
            try_pinned(0, &contigo_region_options { align_bytes: 48, ..good }),
            CONTIGO_E_NOT_POWER_OF_TWO,
            "48",
        );
        refused(
            try_pinned(0, &contigo_region_options { align_bytes: 1 << 40, ..good }),
            CONTIGO_E_CUDA,
            "CUDA_ERROR_OUT_OF_MEMORY",
        );
        refused(
            try_pinned(0, &contigo_region_options { align_bytes: 1 << 63, ..good }),
            CONTIGO_E_ARGUMENT,
            "len_bytes",
        );
        refused(
            try_pinned(0, &contigo_region_options { addr_bits: 32, ..good }),
            CONTIGO_E_TOO_HIGH,
            "32 address bits",
        );
        refused(
            try_pinned(0, &contigo_region_options { write_combined: 2, ..good }),
            CONTIGO_E_VALUE,
            "write_combined cannot be 2",
        );
        assert_eq!(controls.counters().host_allocs, 0, "refused memory was given back");
        // A number that is no ordinal's never was a name.
        refused(try_region(c"cuda:4294967296", &good), CONTIGO_E_BAD_NAME, "cuda");
        clean(controls, 1);
    });
}

#[test]
fn failed_cuda_call_is_named_retry_works() {
    const REGION: [Function; 5] = [
        Function::cuDeviceGetCount,
        Function::cuDevicePrimaryCtxRetain,
        Function::cuMemHostAlloc,
        Function::cuMemHostGetDevicePointer_v2,
        Function::cuPointerGetAttributes,
    ];
    const ENGINE: [Function; 3] =
        [Function::cuModuleLoadDataEx, Function::cuModuleGetFunction, Function::cuStreamCreate];
    let config = REGION
        .iter()
        .chain(&ENGINE)
        .fold(Config::default(), |config, call| config.failing(*call, 1, code::OUT_OF_MEMORY));
    alone(&config, |controls| {
        let provoked = |function: Function, status| {
            refused(
                status,
                CONTIGO_E_CUDA,
                &format!(
                    "{}: CUDA_ERROR_OUT_OF_MEMORY (2)",
                    function.name().trim_end_matches("_v2")
                ),
            );
            let counters = controls.counters();
            assert_eq!(
                (counters.host_allocs, counters.streams, counters.events),
                (0, 0, 0),
                "{function:?}"
            );
        };
        REGION.iter().for_each(|call| provoked(*call, try_pinned(0, &region_options(0))));
        let port = find_port(c"cuda");
        provoked(ENGINE[0], try_module(port, PTX.as_bytes()).0);
        let (status, module) = try_module(port, PTX.as_bytes());
        ok(status);
        ENGINE[1..].iter().for_each(|call| provoked(*call, try_kernel(module, c"gemm8").0));
        ok(contigo_module_close(module));
        ok(contigo_port_close(port));
        close(gpu(0));
        clean(controls, 1);
    });
}
