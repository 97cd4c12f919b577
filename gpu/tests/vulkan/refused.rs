//! Requests that are refused, with their numbers, before a device sees them.

use super::{
    LIMIT, gpu, kernel, region,
    shaders::{self, FLAT, XOR, xor},
    with_shader,
};
use contigo::{
    Error, OperandSpec, Queue,
    job::{
        Launch,
        Parameter::{Operand, Words},
        Signature,
    },
};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanModule};

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let Some(gpu) = gpu("refused::a_device_that_is_not_there_is_an_error") else { return };
    let (count, list) = (VulkanGpu::count().unwrap(), VulkanGpu::list().unwrap());
    assert_eq!((u32::try_from(list.len()).unwrap(), &list[0]), (count, gpu.facts()));
    for ordinal in [count, u32::MAX] {
        let refused = VulkanGpu::open(ordinal).unwrap_err();
        let max = u64::from(count - 1);
        assert_eq!(
            refused,
            Error::Argument {
                name: "the GPU's ordinal",
                value: ordinal.into(),
                min: 0,
                max,
                multiple_of: 1
            }
        );
    }
    for facts in list.iter().skip(1) {
        assert_eq!(VulkanGpu::open(facts.ordinal).err(), facts.refusal());
    }
}

#[test]
fn what_is_no_spirv_is_refused() {
    let Some(gpu) = gpu("refused::what_is_no_spirv_is_refused") else { return };
    // SAFETY: none of it gets past the headers.
    let load = |bytes: &[u8]| unsafe { VulkanModule::load(gpu, bytes) }.unwrap_err();
    assert!(matches!(load(&[]), Error::Argument { value: 0, min: 20, multiple_of: 4, .. }));
    assert!(matches!(
        load(&[3, 2, 0x23, 7, 0]),
        Error::Argument { value: 5, min: 20, multiple_of: 4, .. }
    ));
    assert!(matches!(
        load(b"#version 450 comment"),
        Error::Unexpected { name: "the first word of a module of SPIR-V", .. }
    ));
    const MAGIC: u32 = 0x0723_0203;
    let header = [MAGIC, 0x1_0000, 0, 8, 0];
    let bytes: Vec<_> = header.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    assert!(matches!(load(&bytes), Error::NotFound { among, .. } if among.count() == 0));
    if let Ok(spirv) = shaders::compiled(XOR) {
        // Header, and the first of the two words of `OpCapability Shader`.
        assert!(matches!(
            load(&spirv[..24]),
            Error::Unexpected { name: "an instruction of SPIR-V", value: 0x2_0011 }
        ));
        // Without its last word, the end of a function.
        assert!(matches!(
            load(&spirv[..spirv.len() - 4]),
            Error::Unexpected { name: "the last function of SPIR-V, which has no end,", .. }
        ));
    }
}

/// A driver would end the process, or answer something, where a shader and its signature differ.
#[test]
fn mismatched_shader_is_refused() {
    let Some(gpu) = gpu("refused::mismatched_shader_is_refused") else {
        return;
    };
    for version in ["vulkan1.0", "vulkan1.1", "vulkan1.2"] {
        let Ok(spirv) = shaders::compiled_for(version, XOR) else { return };
        // SAFETY: glslangValidator made it; no job is started.
        let module = unsafe { VulkanModule::load(gpu, &spirv) }.unwrap();
        drop(kernel(&module, xor()));
    }
    let (any, word, long) = (Operand(OperandSpec::in_out()), Words(1), Words(2));
    let buffer = |at: &str| format!("layout({at}) buffer B {{ uint data[]; }} b;");
    let argument = |name, value, wanted| {
        Some(Error::Argument { name, value, min: wanted, max: wanted, multiple_of: 1 })
    };
    let unsupported = |what, fix| Some(Error::Unsupported { what, fix });
    let one = buffer("set = 0, binding = 0");
    let push = |members: &str| format!("{one} layout(push_constant) uniform W {{ {members} }} w;");
    let (constants, buffers) =
        ("give it storage buffers and push constants", "give each a binding of its own");
    let other = "the shader has an image, a sampler or a uniform block";
    let place = |value, max| {
        let name =
            "the place in bytes of a shader's push constant, which lies inside one parameter,";
        Some(Error::Argument { name, value, min: 0, max, multiple_of: 1 })
    };
    for (declared, used, parameters, refused) in [
        (one.clone(), "b.data[0] = 1;", &[any][..], None),
        (
            buffer("set = 1, binding = 0"),
            "b.data[0] = 1;",
            &[any],
            argument("the descriptor set of a shader's buffer", 1, 0),
        ),
        (
            buffer("set = 0, binding = 2"),
            "b.data[0] = 1;",
            &[any, any],
            Some(Error::Argument {
                name: "the binding of a shader's buffer",
                value: 2,
                min: 0,
                max: 1,
                multiple_of: 1,
            }),
        ),
        // Fewer buffers and words than the signature has: a compiler leaves out what has no effect.
        (one.clone(), "b.data[0] = 1;", &[any, any], None),
        (one.clone(), "b.data[0] = 1;", &[any, word], None),
        (
            format!("{one} layout(set = 0, binding = 1) buffer C {{ uint data[]; }} c;"),
            "b.data[0] = c.data[0];",
            &[any],
            Some(Error::Argument {
                name: "the binding of a shader's buffer",
                value: 1,
                min: 0,
                max: 0,
                multiple_of: 1,
            }),
        ),
        (
            format!("{one} layout(set = 0, binding = 1) uniform sampler2D s;"),
            "b.data[0] = uint(texture(s, vec2(0)).x);",
            &[any, any],
            unsupported(other, constants),
        ),
        (
            format!("{one} layout(set = 0, binding = 1) uniform U {{ uint u; }};"),
            "b.data[0] = u;",
            &[any, any],
            unsupported(other, constants),
        ),
        (
            "layout(set = 0, binding = 0) buffer B { uint data[]; } b[2];".into(),
            "b[0].data[0] = 1;",
            &[any],
            unsupported("the shader has an array of buffers", buffers),
        ),
        // Push constants.
        (push("uint n;"), "b.data[0] = w.n;", &[any], place(0, 0)),
        (push("uint n; uint m;"), "b.data[0] = w.m;", &[any, word], place(4, 0)),
        (push("uint n; uint m;"), "b.data[0] = w.m;", &[any, word, word], None),
        (push("uint n; uint m;"), "b.data[0] = w.m;", &[any, long], None),
        // A pair of words begins at a multiple of 8: with a word between.
        (
            push("uint n; uvec2 d; uint m;"),
            "b.data[0] = w.m + w.d.x;",
            &[any, word, long, word],
            place(8, 4),
        ),
        (
            push("uint n; uvec2 d; uint m;"),
            "b.data[0] = w.m + w.d.x;",
            &[any, word, long, word, word],
            place(8, 4),
        ),
        (
            push("uint n; uvec2 d; uint m;"),
            "b.data[0] = w.m + w.d.x;",
            &[any, word, word, long, word],
            None,
        ),
        // A structure by value, an array, and a matrix by columns and by rows.
        (push("uint n; vec3 v; uint m;"), "b.data[0] = w.m + uint(w.v.x);", &[any, Words(8)], None),
        (push("mat4 m;"), "b.data[0] = uint(w.m[b.data[1]].x);", &[any], place(0, 0)),
        (push("mat4 m;"), "b.data[0] = uint(w.m[b.data[1]].x);", &[any, Words(15)], place(0, 0)),
        (push("mat4 m;"), "b.data[0] = uint(w.m[b.data[1]].x);", &[any, Words(16)], None),
        (
            push("layout(row_major) mat4x2 m;"),
            "b.data[0] = uint(w.m[b.data[1]].x);",
            &[any, Words(8)],
            None,
        ),
        (
            push("uint n; uint a[8];"),
            "b.data[0] = w.a[b.data[1]];",
            &[any, word, Words(7)],
            place(4, 0),
        ),
        (push("uint n; uint a[8];"), "b.data[0] = w.a[b.data[1]];", &[any, word, Words(8)], None),
    ] {
        let glsl = format!(
            "#version 450\nlayout(local_size_x = 1) in; {declared} void main() {{ {used} }}"
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
    let Some((gpu, module)) =
        with_shader("refused::a_kernel_is_the_module_s_and_the_device_s", FLAT)
    else {
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
    let wrong = Error::Argument {
        name: "threads of a workgroup in x",
        value: 64,
        min: 32,
        max: 32,
        multiple_of: 1,
    };
    assert_eq!(new(c"main", data(), [64, 1, 1]), Err(wrong));
    // More words, and more operands, than a device may have. Lavapipe takes 128 bytes and 16
    // buffers or more.
    let most = gpu.facts().max_push_constant_bytes;
    let words = Signature::new("words", &[Operand(OperandSpec::in_out()), Words(57)]).unwrap();
    if most < 4 * 57 {
        let wrong = Error::Argument {
            name: "bytes of a kernel's argument words",
            value: 228,
            min: 0,
            max: most.into(),
            multiple_of: 1,
        };
        assert_eq!(new(c"main", words, [32, 2, 1]), Err(wrong));
    }
    assert!(format!("{module:?}").contains("main"));
}

#[test]
fn a_job_is_checked_and_gives_its_buffers_back() {
    let Some((gpu, module)) =
        with_shader("refused::a_job_is_checked_and_gives_its_buffers_back", XOR)
    else {
        return;
    };
    let facts = gpu.facts();
    let region = region(gpu, 64 << 10);
    let pool = region.pool(4, 8_192).unwrap();
    let mut queue = Queue::new(kernel(&module, xor()), 1).unwrap();
    let launch = Launch::of(16, 64);
    let groups = facts.max_groups;
    let mut refused = |launch: Launch, scalars: &[u32], from: std::ops::Range<usize>| {
        let operands =
            [pool.take().unwrap().to_device(from), pool.take().unwrap().from_device(..4_096)];
        let refused = queue.submit(operands, &launch.with(scalars)).unwrap_err();
        assert!(refused.buffers.is_some());
        refused.error
    };
    let argument = |name, value: u32, min: u32, max: u32| Error::Argument {
        name,
        value: value.into(),
        min: min.into(),
        max: max.into(),
        multiple_of: 1,
    };
    let at = |launch, error| (launch, error);
    for (launch, expected) in [
        at(Launch::of(16, 32), argument("threads of a workgroup in x", 32, 64, 64)),
        at(
            Launch { block: [64, 2, 1], ..launch },
            argument("threads of a workgroup in y", 2, 1, 1),
        ),
        at(
            Launch { shared_bytes: 4, ..launch },
            argument("shared bytes of a launch, which a shader declares itself,", 4, 0, 0),
        ),
        at(Launch::of(0, 64), argument("blocks and threads of a launch", 0, 1, u32::MAX)),
    ] {
        assert_eq!(refused(launch, &[1_024, 0], 0..4_096), expected);
    }
    if let Some(more) = groups[0].checked_add(1) {
        assert_eq!(
            refused(Launch::of(more, 64), &[1_024, 0], 0..4_096),
            argument("workgroups of a launch in x", more, 1, groups[0])
        );
    }
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
