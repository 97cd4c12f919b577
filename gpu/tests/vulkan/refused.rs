//! Requests that are refused, with their numbers, before a device sees them.

use super::shaders::{self, FLAT, XOR, xor};
use super::{LIMIT, gpu, kernel, region, with_shader};
use contigo::job::Parameter::{Operand, Words};
use contigo::job::{Launch, Signature};
use contigo::{Error, OperandSpec, Queue};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanModule};

fn argument(name: &'static str, value: u64, min: u64, max: u64) -> Error {
    Error::Argument { name, value, min, max, multiple_of: 1 }
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let Some(gpu) = gpu() else { return };
    let (count, list) = (VulkanGpu::count().unwrap(), VulkanGpu::list().unwrap());
    assert_eq!((u32::try_from(list.len()).unwrap(), &list[0]), (count, gpu.facts()));
    for ordinal in [count, u32::MAX] {
        let refused = VulkanGpu::open(ordinal).unwrap_err();
        let max = u64::from(count - 1);
        assert_eq!(refused, argument("the GPU's ordinal", ordinal.into(), 0, max));
    }
    for facts in list.iter().skip(1) {
        assert_eq!(VulkanGpu::open(facts.ordinal).err(), facts.refusal());
    }
}

#[test]
fn what_is_no_spirv_is_refused() {
    let Some(gpu) = gpu() else { return };
    // SAFETY: none of it gets past the headers.
    let load = |bytes: &[u8]| unsafe { VulkanModule::load(gpu, bytes) }.unwrap_err();
    // A length that is no number of words, other bytes, and no entry point.
    let refused = load(&[3, 2, 0x23, 7, 0]);
    assert!(matches!(refused, Error::Argument { value: 5, min: 20, .. }), "{refused}");
    let refused = load(b"#version 450 comment");
    assert!(matches!(refused, Error::Unexpected { .. }), "{refused}");
    let header = [0x0723_0203, 0x1_0000, 0, 8, 0_u32].map(u32::to_ne_bytes);
    let refused = load(header.as_flattened());
    assert!(matches!(refused, Error::NotFound { among, .. } if among.count() == 0), "{refused}");
}

/// A driver would end the process, or answer something, where a shader and its signature differ.
#[test]
fn mismatched_shader_is_refused() {
    let Some(gpu) = gpu() else { return };
    for version in ["vulkan1.0", "vulkan1.1", "vulkan1.2"] {
        let Ok(spirv) = shaders::compiled_for(version, XOR) else { return };
        // SAFETY: glslangValidator made it; no job is started.
        let module = unsafe { VulkanModule::load(gpu, &spirv) }.unwrap();
        drop(kernel(&module, xor()));
    }
    let (any, word, long) = (Operand(OperandSpec::in_out()), Words(1), Words(2));
    let buffer = |at: &str| format!("layout({at}) buffer B {{ uint data[]; }} b;");
    let one = buffer("set = 0, binding = 0");
    let also = |other: &str| format!("{one} layout(set = 0, binding = 1) {other}");
    let push = |members: &str| format!("{one} layout(push_constant) uniform W {{ {members} }} w;");
    let (words, spread, array) =
        (push("uint n; uint m;"), push("uint n; uvec2 d; uint m;"), push("uint n; uint a[8];"));
    let (pair, column, item) = ("w.m + w.d.x", "uint(w.m[b.data[1]].x)", "w.a[b.data[1]]");
    let other = Error::Unsupported {
        what: "the shader has an image, a sampler or a uniform block",
        fix: "give it storage buffers and push constants",
    };
    let arrays = Error::Unsupported {
        what: "the shader has an array of buffers",
        fix: "give each a binding of its own",
    };
    let set = argument("the descriptor set of a shader's buffer", 1, 0, 0);
    let binding = |value, max| Some(argument("the binding of a shader's buffer", value, 0, max));
    let place = |value, max| {
        let name =
            "the place in bytes of a shader's push constant, which lies inside one parameter,";
        Some(argument(name, value, 0, max))
    };
    // What it declares, and what it writes to its first word.
    for (declared, value, parameters, refused) in [
        (one.clone(), "1", &[any][..], None),
        (buffer("set = 1, binding = 0"), "1", &[any], Some(set)),
        (buffer("set = 0, binding = 2"), "1", &[any, any], binding(2, 1)),
        // Fewer buffers and words than the signature has: a compiler leaves out what has no effect.
        (one.clone(), "1", &[any, any], None),
        (one.clone(), "1", &[any, word], None),
        (also("buffer C { uint data[]; } c;"), "c.data[0]", &[any], binding(1, 0)),
        (also("uniform sampler2D s;"), "uint(texture(s, vec2(0)).x)", &[any, any], Some(other)),
        (also("uniform U { uint u; };"), "u", &[any, any], Some(other)),
        (
            "layout(set = 0, binding = 0) buffer B { uint data[]; } c[2];
             layout(set = 0, binding = 1) buffer D { uint data[]; } b;"
                .into(),
            "c[0].data[0]",
            &[any, any],
            Some(arrays),
        ),
        // Push constants.
        (push("uint n;"), "w.n", &[any], place(0, 0)),
        (words.clone(), "w.m", &[any, word], place(4, 0)),
        (words.clone(), "w.m", &[any, word, word], None),
        (words, "w.m", &[any, long], None),
        // A pair of words begins at a multiple of 8: with a word between.
        (spread.clone(), pair, &[any, word, long, word], place(8, 4)),
        (spread.clone(), pair, &[any, word, long, word, word], place(8, 4)),
        (spread, pair, &[any, word, word, long, word], None),
        // A structure by value, an array, and a matrix by columns and by rows.
        (push("uint n; vec3 v; uint m;"), "w.m + uint(w.v.x)", &[any, Words(8)], None),
        (push("mat4 m;"), column, &[any], place(0, 0)),
        (push("mat4 m;"), column, &[any, Words(15)], place(0, 0)),
        (push("mat4 m;"), column, &[any, Words(16)], None),
        (push("layout(row_major) mat4x2 m;"), column, &[any, Words(8)], None),
        (array.clone(), item, &[any, word, Words(7)], place(4, 0)),
        (array, item, &[any, word, Words(8)], None),
    ] {
        let glsl = format!(
            "#version 450\nlayout(local_size_x = 1) in; {declared}
             void main() {{ b.data[0] = {value}; }}"
        );
        let Ok(spirv) = shaders::compiled(&glsl) else { return };
        // SAFETY: glslangValidator made it; no job is started.
        let refusal = unsafe {
            let module = VulkanModule::load(gpu, &spirv).unwrap();
            VulkanKernel::new(
                &module,
                c"main",
                Signature::new("shader", parameters).unwrap(),
                [1; 3],
            )
            .err()
        };
        assert_eq!(refusal, refused, "{glsl}");
    }
}

#[test]
fn a_kernel_is_the_module_s_and_the_device_s() {
    let Some((gpu, module)) = with_shader(FLAT) else {
        return;
    };
    let data = || Signature::new("data", &[Operand(OperandSpec::in_out())]).unwrap();
    let new = |entry, signature, local| {
        // SAFETY: the shader has one buffer; a kernel with more is refused.
        unsafe { VulkanKernel::new(&module, entry, signature, local) }.map(drop)
    };
    assert_eq!(new(c"main", data(), [32, 2, 1]), Ok(()));
    assert!(
        matches!(new(c"mine", data(), [32, 2, 1]), Err(Error::NotFound { among, .. }) if among.count() == 1)
    );
    let wrong = argument("threads of a workgroup in x", 64, 32, 32);
    assert_eq!(new(c"main", data(), [64, 1, 1]), Err(wrong));
    // More words, and more operands, than a device may have. Lavapipe takes 128 bytes and 16
    // buffers or more.
    let most = gpu.facts().max_push_constant_bytes;
    let words = Signature::new("words", &[Operand(OperandSpec::in_out()), Words(57)]).unwrap();
    if most < 4 * 57 {
        let wrong = argument("bytes of a kernel's argument words", 228, 0, most.into());
        assert_eq!(new(c"main", words, [32, 2, 1]), Err(wrong));
    }
    assert!(format!("{module:?}").contains("main"));
}

#[test]
fn a_job_is_checked_and_gives_its_buffers_back() {
    let Some((gpu, module)) = with_shader(XOR) else {
        return;
    };
    let facts = gpu.facts();
    let region = region(gpu, 64 << 10);
    let pool = region.pool(4, 8_192).unwrap();
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    let launch = Launch::of(16, 64);
    let mut refused = |launch: Launch, scalars: &[u32], from: std::ops::Range<usize>| {
        let operands =
            [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(..4_096)];
        let refused = queue.submit(operands, &launch.with(scalars)).unwrap_err();
        assert!(refused.buffers.is_some());
        refused.error
    };
    assert_eq!(
        refused(Launch::of(16, 32), &[1_024, 0], 0..4_096),
        argument("threads of a workgroup in x", 32, 64, 64)
    );
    assert_eq!(
        refused(Launch::of(0, 64), &[1_024, 0], 0..4_096),
        argument("blocks and threads of a launch", 0, 1, u32::MAX.into())
    );
    assert_eq!(
        refused(launch, &[1_025, 0], 0..4_100),
        Error::BufferSize { index: 1, need_bytes: 4_100, have_bytes: 4_096 }
    );
    assert_eq!(
        refused(launch, &[1_024, 0], 0..4_092),
        Error::BufferSize { index: 0, need_bytes: 4_096, have_bytes: 4_092 }
    );
    assert!(matches!(
        refused(launch, &[1_024], 0..4_096),
        Error::Argument { value: 8, min: 9, .. }
    ));
    // The device asks for an alignment, as lavapipe does.
    if facts.min_storage_buffer_offset_alignment > 4 {
        let error = refused(launch, &[1_024, 0], 4..4_100);
        let align = usize::try_from(facts.min_storage_buffer_offset_alignment).unwrap();
        assert!(
            matches!(error, Error::BufferAlign { index: 0, addr, align_bytes } if addr % 8 == 4 && align_bytes == align),
            "{error:?}"
        );
    }
    // Nothing of it has hurt the queue.
    assert_eq!(pool.taken(), 0);
    let operands =
        [pool.take().unwrap().to_device(..4_096), pool.take().unwrap().from_device(..4_096)];
    drop(queue.run(operands, &launch.with(&[1_024, 0]), LIMIT).unwrap());
    assert!(!gpu.is_hung());
}
