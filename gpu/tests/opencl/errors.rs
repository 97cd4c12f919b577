//! Bad input: typed errors with numbers, and nothing lost.

use super::{LIMIT, device, in_place, keyed, module, region};
use contigo::job::Parameter::{Operand, Words};
use contigo::job::{Launch, Signature};
use contigo::mem::DevSlice;
use contigo::{DevAddr, Driver, Error, OperandSpec, Queue};
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClModule};

const ANY: contigo::job::Parameter = Operand(OperandSpec::in_out());

fn argument(name: &'static str, value: u64, min: u64, max: u64) -> Error {
    Error::Argument { name, value, min, max, multiple_of: 1 }
}

#[test]
fn there_is_no_such_device() {
    if device().is_none() {
        return;
    }
    let count = u64::from(OpenClGpu::count().unwrap());
    for ordinal in [u32::try_from(count).unwrap(), 15, 16, u32::MAX] {
        let expected = argument("the device's number", ordinal.into(), 0, count - 1);
        assert_eq!(OpenClGpu::open(ordinal).unwrap_err(), expected);
    }
}

#[test]
fn a_text_without_a_byte_is_refused() {
    let Some(gpu) = device() else { return };
    // SAFETY: there is no text.
    let refused = unsafe { OpenClModule::build(gpu, "", c"", &mut Log::new()) }.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Argument { name: "the length of a text of OpenCL C", value: 0, min: 1, .. }
        ),
        "{refused}"
    );
}

#[test]
fn an_origin_between_two_units_is_refused() {
    let Some(gpu) = device() else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let align_bytes = gpu.align().bytes();
    let mut queue = Queue::new(keyed(&module), 1).unwrap();
    let (mut from, to) =
        (region.alloc(4096, gpu.align()).unwrap(), region.alloc(4096, gpu.align()).unwrap());
    let first = region.dev_addr_of(&gpu.port(), from.as_mut_ptr(), 1).unwrap().0;
    let words = Launch::of(1, 64).with(&[64, 1]);
    let refused = queue
        .submit([from.to_device(64 % align_bytes + 1..), to.from_device(..)], &words)
        .unwrap_err();
    let addr = first + (64 % align_bytes + 1) as u64;
    assert_eq!(refused.error, Error::BufferAlign { index: 0, addr, align_bytes });
    // Everything came back, and the next job runs.
    let [from, to] = refused.buffers.unwrap().map(|operand| operand.into_buf().unwrap());
    let _ = queue.run([from.to_device(align_bytes..), to.from_device(..)], &words, LIMIT).unwrap();
}

#[test]
fn a_launch_beyond_the_limits_is_refused() {
    let Some(gpu) = device() else { return };
    let module = module(gpu);
    let kernel = in_place(&module, "flip", c"flip");
    let operand = [DevSlice { addr: DevAddr(1 << 40), offset_bytes: 0, len_bytes: 64 }];
    let check = |launch: Launch| kernel.check(&operand, &launch.with(&[]));
    assert_eq!(check(Launch::of(1, 64)), Ok(()));
    let told = |error| match error {
        Err(Error::Argument { name, value, max, .. }) => (name, value, max),
        other => panic!("{other:?}"),
    };
    let [x, ..] = gpu.facts().max_items;
    let too_many = u32::try_from(gpu.facts().max_group_items).unwrap() + 1;
    let (name, value, max) = told(check(Launch::of(1, too_many)));
    assert_eq!((name, value), ("the count of work items in a group", too_many.into()));
    assert!(max <= x as u64);
    let all = Launch { block: [u32::MAX; 3], ..Launch::of(1, 1) };
    assert_eq!(told(check(all)).1, u64::MAX);
    let shared = Launch { shared_bytes: 16, ..Launch::of(1, 64) };
    assert_eq!(told(check(shared)), ("the bytes of shared memory of a launch", 16, 0));
    assert_eq!(told(check(Launch::of(0, 64))).1, 0);
    // Fewer words than a launch has.
    assert!(matches!(
        kernel.check(&operand, &[1, 2]),
        Err(Error::Argument { value: 2, min: 7, .. })
    ));
}

/// An address that is no object's, or runs past its end, is found before anything is launched.
#[test]
fn an_address_of_no_buffer_is_refused() {
    let Some(gpu) = device() else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut kernel = in_place(&module, "flip", c"flip");
    let words = Launch::of(1, 64).with(&[]);
    let mut submit = |addr, len_bytes| {
        let operand = [DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes }];
        kernel.check(&operand, &words).unwrap();
        // SAFETY: it is refused: no block is there.
        unsafe { kernel.submit(0, &operand, &words) }
    };
    assert!(matches!(submit(0xFF_FFFF << 40, 64), Err(Error::OutOfRange { len_bytes: 0, .. })));
    let expected = Error::OutOfRange { start: 0, end: (1 << 16) + 1, len_bytes: 1 << 16 };
    assert_eq!(submit(region.base().raw(), (1 << 16) + 1), Err(expected));
    assert_eq!(kernel.poll(LIMIT / 1000).unwrap(), None);
    kernel.stop().unwrap();
}

#[test]
fn a_source_with_errors_says_which() {
    let Some(gpu) = device() else { return };
    let mut log = Log::from("of a run before");
    // SAFETY: nothing of it runs.
    let built = unsafe {
        OpenClModule::build(
            gpu,
            "kernel void broken(global int *to) { to[0] = missing; }",
            c"",
            &mut log,
        )
    };
    let expected =
        Error::Gpu { call: "clBuildProgram", code: -11, name: "CL_BUILD_PROGRAM_FAILURE" };
    assert_eq!(built.unwrap_err(), expected);
    assert!(log.contains("missing") && !log.contains("of a run before"), "{log}");
    // SAFETY: as above.
    let built = unsafe {
        OpenClModule::build(gpu, "kernel void empty(void) {}", c"--no-such-option", &mut log)
    };
    assert!(matches!(built.unwrap_err(), Error::Gpu { call: "clBuildProgram", .. }));
}

#[test]
fn wrong_kernel_signature_is_refused() {
    let Some(gpu) = device() else {
        return;
    };
    let module = module(gpu);
    let new = |entry, parameters: &[_]| {
        let signature = Signature::new("wrong", parameters).unwrap();
        // SAFETY: it is refused.
        unsafe { OpenClKernel::new(&module, entry, signature) }.map(drop)
    };
    assert_eq!(
        new(c"missing", &[ANY]),
        Err(Error::Gpu { call: "clCreateKernel", code: -46, name: "CL_INVALID_KERNEL_NAME" })
    );
    // Fewer parameters than the kernel has, and more.
    let count = "the count of parameters in the signature";
    assert_eq!(new(c"keyed", &[ANY, ANY]), Err(argument(count, 2, 4, 4)));
    assert_eq!(new(c"flip", &[ANY, Words(1)]), Err(argument(count, 2, 1, 1)));
    // A scalar of three words, where one is taken.
    let answer = new(c"keyed", &[ANY, ANY, Words(3), Words(1)]);
    assert_eq!(
        answer,
        Err(Error::Gpu { call: "clSetKernelArg", code: -51, name: "CL_INVALID_ARG_SIZE" })
    );
}
