//! The kernel `spin`, which `gpu_run.rs` executes too, where there is no GPU.

use std::ffi::CStr;

/// `spin(out, flag)`: writes 1 to `out`, reads the word at `flag` until it is not 0, writes 2 to
/// `out`. After 200,000,000 looks it gives up, and writes 3. A look at pinned memory takes 0.1 us
/// to 2 us, so that is longer than the tests need, and some minutes at most. For compute capability
/// 5.3 and newer, in an ISA that every driver knows.
pub(crate) const PTX: &CStr = c"
.version 6.0
.target sm_53
.address_size 64

.visible .entry spin(
	.param .u64 spin_param_0,
	.param .u64 spin_param_1
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<5>;

	ld.param.u64 	%rd1, [spin_param_0];
	ld.param.u64 	%rd2, [spin_param_1];
	cvta.to.global.u64 	%rd3, %rd1;
	cvta.to.global.u64 	%rd4, %rd2;
	mov.u32 	%r1, 1;
	st.volatile.global.u32 	[%rd3], %r1;
	mov.u32 	%r4, 200000000;

$L__BB0_1:
	ld.volatile.global.u32 	%r2, [%rd4];
	setp.ne.s32 	%p1, %r2, 0;
	@%p1 bra 	$L__BB0_2;
	sub.u32 	%r4, %r4, 1;
	setp.ne.s32 	%p2, %r4, 0;
	@%p2 bra 	$L__BB0_1;

	mov.u32 	%r5, 3;
	st.volatile.global.u32 	[%rd3], %r5;
	ret;

$L__BB0_2:
	mov.u32 	%r3, 2;
	st.volatile.global.u32 	[%rd3], %r3;
	ret;
}
";

pub(crate) const BEGUN: u32 = 1;
pub(crate) const ENDED: u32 = 2;
pub(crate) const GAVE_UP: u32 = 3;
