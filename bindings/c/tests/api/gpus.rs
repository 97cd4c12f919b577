//! GPUs of Vulkan and OpenCL through the functions that C calls, on Mesa's lavapipe and on pocl. A
//! test is skipped, by its name, where neither is installed.

use crate::common::*;
use contigo::dlpack::abi::{DlTensor, device};
use contigo_c::*;
use core::ffi::CStr;

/// One interface: its name, gemm8 as code for it, the kernel there, and DLPack's tag.
struct Interface {
    name: &'static CStr,
    code: &'static [u8],
    entry: &'static CStr,
    tag: i32,
}

const INTERFACES: [Interface; 2] = [
    Interface {
        name: c"vulkan",
        code: include_bytes!("../../../../examples/gemm8/kernels/gemm8.spv"),
        entry: c"main",
        tag: device::VULKAN,
    },
    Interface {
        name: c"opencl",
        code: include_bytes!("../../../../examples/gemm8/kernels/gemm8.cl"),
        entry: c"gemm8",
        tag: device::OPENCL,
    },
];

/// One block of 64 threads; 1 row of 64 by 16 columns, to int32.
const ARGS: [u32; 11] = [1, 1, 1, 64, 1, 1, 0, 1, 16, 64, 0];
const TIMEOUT_US: u32 = 30_000_000;

/// The interface's port; or none, and the test is skipped.
fn port(of: &Interface) -> Option<contigo_port> {
    let (status, port) = try_port(of.name);
    if [CONTIGO_E_NO_LIBRARY, CONTIGO_E_NOT_FOUND].contains(&status) {
        skip(&last_error());
        return None;
    }
    ok(status);
    Some(port)
}

/// The device's tensor of a buffer that it has.
fn shown(buf: contigo_buf, keep_byte_offset: u32) -> Result<DlTensor, String> {
    let (status, tensor) =
        lend(buf, &contigo_tensor_options { keep_byte_offset, ..options(&[4, 4]) });
    if status != CONTIGO_OK {
        return Err(last_error());
    }
    let shown = unsafe { (*tensor).tensor };
    delete(tensor);
    ok(contigo_buf_unlend(buf));
    Ok(shown)
}

#[test]
fn a_kernel_works_on_the_bytes_that_the_cpu_sees() {
    for interface in &INTERFACES {
        let Some(port) = port(interface) else { continue };
        let region = open_region(interface.name, &region_options(0));
        let pool = open_pool(region, SLOT, 8, 256);
        let (status, module) = try_module(port, interface.code);
        ok(status);
        let (status, engine) = try_kernel(module, interface.entry);
        ok(status);
        let operands = operands_of(pool);
        let start = |args: &[u32]| try_job(engine, &operands, args);
        let (status, job) = start(&ARGS);
        ok(status);
        ok(wait(job, TIMEOUT_US));
        assert_eq!(bytes(operands[3].buf)[..64], [128, 0, 0, 0].repeat(16), "64 times 1 times 2");

        // The device's tensors: one object, and each buffer's place in it beside the handle.
        ok(wait_device(start(&ARGS).1, TIMEOUT_US));
        let kept: Vec<_> = operands.iter().map(|operand| shown(operand.buf, 1).unwrap()).collect();
        assert!(kept.iter().all(
            |tensor| tensor.device.device_type == interface.tag && tensor.data == kept[0].data
        ));
        let offsets: Vec<_> = kept.iter().map(|tensor| tensor.byte_offset).collect();
        let first = offsets[0];
        assert_eq!(offsets, [first, first + 4096, first + 8192, first + 12288].as_slice());
        // Nothing can be added to a handle.
        let folded = shown(operands[3].buf, 0).unwrap_err();
        assert!(folded.contains("handle"), "{folded}");
        operands.iter().for_each(|operand| ok(contigo_buf_take_back(operand.buf)));

        // A launch that is not the kernel's, and memory of another board.
        let mut wrong = ARGS;
        wrong[6] = 1;
        refused(start(&wrong).0, CONTIGO_E_ARGUMENT, "shared");
        let board = Board::new();
        let strange = operands_of(board.pool);
        refused(try_job(engine, &strange, &ARGS).0, CONTIGO_E_WRONG_BUS, "operand 0");
        refused(
            give(operands[0].buf, board.port, 0, 64, CONTIGO_READS).0,
            CONTIGO_E_WRONG_BUS,
            "not on the bus of this memory",
        );
        release_all(&strange);
        refused(
            try_module(board.port, interface.code).0,
            CONTIGO_E_KIND,
            "code is loaded for a GPU, and the port is ",
        );
        board.close();

        assert_eq!(region_info(region).bytes_copied, 0);
        release_all(&operands);
        refused(contigo_module_close(module), CONTIGO_E_STILL_USED, "1 still use this module");
        ok(contigo_engine_close(engine));
        ok(contigo_module_close(module));
        ok(contigo_pool_close(pool));
        ok(contigo_region_close(region));
        ok(contigo_port_close(port));
    }
}

#[test]
fn bad_code_is_refused_in_compilers_words() {
    let [vulkan, opencl] = &INTERFACES;
    if let Some(port) = port(vulkan) {
        refused(
            try_module(port, &vulkan.code[..30]).0,
            CONTIGO_E_ARGUMENT,
            "the length of a module of SPIR-V",
        );
        refused(try_module(port, &opencl.code[..64]).0, CONTIGO_E_UNEXPECTED, "SPIR-V");
        let (status, module) = try_module(port, vulkan.code);
        ok(status);
        refused(try_kernel(module, c"gemm8").0, CONTIGO_E_NOT_FOUND, "entry point");
        ok(contigo_module_close(module));
        ok(contigo_port_close(port));
    }
    if let Some(port) = port(opencl) {
        let (status, _) = try_module(port, b"kernel void f(global int *a) { a[0] = unheard_of; }");
        refused(status, CONTIGO_E_GPU, "clBuildProgram");
        let text = last_error();
        let (error, words) = text.split_once("; the compiler of the GPU's driver says: ").unwrap();
        assert!(error.starts_with("clBuildProgram") && words.contains("unheard_of"), "{text}");
        // The next refusal has its own words alone.
        refused(contigo_region_close(7), CONTIGO_E_HANDLE, "no handle");
        assert!(!last_error().contains("unheard_of"));
        refused(try_module(port, b"kernel \xFF").0, CONTIGO_E_ARGUMENT, "is 7: it must be 8");
        let (status, module) = try_module(port, opencl.code);
        ok(status);
        refused(try_kernel(module, c"gemm9").0, CONTIGO_E_GPU, "clCreateKernel");
        ok(contigo_module_close(module));
        ok(contigo_port_close(port));
    }
}

#[test]
fn a_gpu_has_the_name_that_its_driver_gives_it() {
    let facts = |device| {
        let mut info = empty::<contigo_device_info>();
        ok(unsafe { contigo_device_get_info(device, &mut info) });
        (
            unsafe { core::ffi::CStr::from_ptr(info.gpu_name.as_ptr()) }
                .to_str()
                .unwrap()
                .to_owned(),
            info.is_contigo_device,
        )
    };
    for interface in &INTERFACES {
        let Some(port) = port(interface) else { continue };
        ok(contigo_port_close(port));
        let device = open_device(interface.name);
        let (name, is_contigo_device) = facts(device);
        assert!(name.len() > 3 && name.is_ascii() && is_contigo_device == 0, "{name}");
        println!("{name}");
        ok(contigo_device_close(device));
    }
    let board = Board::new();
    assert_eq!(facts(board.device), (String::new(), 0), "no GPU");
    board.close();
}

#[test]
fn missing_gpu_is_error_with_its_numbers() {
    for interface in &INTERFACES {
        let Some(port) = port(interface) else { continue };
        ok(contigo_port_close(port));
        let many =
            std::ffi::CString::new(format!("{}:4000", interface.name.to_str().unwrap())).unwrap();
        refused(try_port(&many).0, CONTIGO_E_ARGUMENT, "4000");
        refused(try_region(&many, &region_options(0)), CONTIGO_E_ARGUMENT, "4000");
    }
    refused(try_port(c"vulkan:x").0, CONTIGO_E_NOT_FOUND, "vulkan, opencl");
}
