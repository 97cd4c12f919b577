//! Modules and launches; a kernel that may wait for the CPU goes on while the CPU does.

use super::*;
use std::time::Instant;

#[test]
fn modules_are_ptx_with_entries() {
    let fake = Fake::current(&Config::default());
    let module = load(PTX).unwrap();
    for name in [c"gemm8", c"copy_bytes", c"fill_bytes", c"unknown"] {
        assert_eq!(function(module, name), function(module, name));
    }
    assert_eq!([function(module, c"hidden"), function(module, c"")], [Err(code::NOT_FOUND); 2]);
    let fill = function(module, c"fill_bytes").unwrap();
    assert_eq!(launch(function(module, c"unknown").unwrap(), 0, []), OK);
    assert_eq!([cuModuleUnload(module), cuModuleUnload(module)], [OK, code::INVALID_HANDLE]);
    assert_eq!(function(module, c"gemm8"), Err(code::INVALID_HANDLE));
    assert_eq!(launch(fill, 0, [0, 0, 0]), code::INVALID_HANDLE);
    assert_eq!(fake.counters().modules, 0);
}

#[test]
fn the_compiler_says_what_it_does_not_take() {
    let _fake = Fake::current(&Config::default());
    let mut log = [0x7F_u8; 64];
    let options = [5_u32, 6];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(48)];
    // SAFETY: two options with their values, and a buffer of more than 48 bytes.
    let loaded = out(|module| unsafe {
        let image = c"nothing".as_ptr().cast();
        cuModuleLoadDataEx(module, image, 2, options.as_ptr(), values.as_mut_ptr())
    });
    assert_eq!(loaded, Err(code::INVALID_PTX));
    let said = CStr::from_bytes_until_nul(&log).unwrap();
    assert_eq!(said, c"ptxas application ptx input, line 1; fatal   : ");
    assert_eq!((log[48], values[1].addr()), (0x7F, 48));
}

#[test]
fn launches_are_checked() {
    let _fake = Fake::current(&Config::default());
    let (fill, value) = (fill_bytes(), 0_u64);
    let params = [ptr::from_ref(&value).cast(); 3];
    for (grid, block, expected) in [
        ([1, 1, 1], [0, 1, 1], code::INVALID_VALUE),
        ([1, 0, 1], [1, 1, 1], code::INVALID_VALUE),
        ([1, 1, 1], [1024, 2, 1], code::INVALID_VALUE),
        ([1, 65536, 1], [1, 1, 1], code::INVALID_VALUE),
        ([65536, 1, 1], [1024, 1, 1], OK),
    ] {
        assert_eq!(launch_as(fill, grid, block, 0, &params), expected, "{grid:?} {block:?}");
    }
    assert_eq!(launch_as(fill, [1; 3], [1; 3], 0, &[]), code::INVALID_VALUE);
    assert_eq!(launch(fill, 0x99, [0, 0, 0]), code::INVALID_HANDLE);
    assert_eq!(launch(0x99, 0, [0, 0, 0]), code::INVALID_HANDLE);
}

/// `wait(flag, out)`: writes 1 to `out`, waits until `flag` is not 0, and adds its value to `out`.
const WAIT: &CStr = c".version 6.0
.target sm_53
.visible .entry wait(.param .u64 flag, .param .u64 out) {
.reg .pred %p<1>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
ld.param.u64 %rd0, [flag]; ld.param.u64 %rd1, [out];
st.volatile.global.u32 [%rd1], 1;
again: ld.volatile.global.u32 %r0, [%rd0]; setp.eq.s32 %p0, %r0, 0; @%p0 bra again;
add.s32 %r1, %r0, 1; st.volatile.global.u32 [%rd1], %r1;
}";

#[test]
fn kernel_follows_ptx_and_waits_for_cpu() {
    let fake = Fake::current(&Config { kernel_polls: 0, ..Config::default() });
    let wait = function(load(WAIT).unwrap(), c"wait").unwrap();
    let [(flag, flag_at), (out, out_at)] = [block(), block()];
    fill(flag, 0, 4);
    assert_eq!(launch(wait, 0, [flag_at, out_at]), OK);
    assert_eq!(
        [cuStreamQuery(0), cuStreamQuery(0), cuStreamSynchronize(0)],
        [code::NOT_READY, code::NOT_READY, code::LAUNCH_TIMEOUT]
    );
    assert_eq!((byte(out, 0), fake.counters().kernels_done, fake.counters().queued), (1, 0, 1));
    // It goes on without a call.
    fill(flag, 6, 1);
    let since = Instant::now();
    while byte(out, 0) != 7 {
        assert!(since.elapsed().as_secs() < 10, "{}", byte(out, 0));
    }
    assert_eq!((cuStreamSynchronize(0), fake.counters().kernels_done), (OK, 1));
    // It uses whatever a parameter points into, and nothing else.
    fill(flag, 0, 1);
    assert_eq!(launch(wait, 0, [flag_at, out_at]), OK);
    assert_eq!((free(out), fake.counters().freed_under_a_kernel), (OK, 1));
    assert_eq!(cuStreamQuery(0), code::ILLEGAL_ADDRESS);
}
