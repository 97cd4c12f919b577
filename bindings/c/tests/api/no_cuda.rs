//! A library without CUDA, by its feature or for a 32-bit processor, has the same header, and says
//! why it opens no GPU.

use crate::common::*;
use contigo_c::*;

#[test]
fn a_gpu_is_refused_with_the_reason() {
    let why = if cfg!(target_pointer_width = "64") {
        "without its feature cuda"
    } else {
        "32-bit processor"
    };
    for name in [c"cuda", c"cuda:0", c"cuda:9"] {
        refused(try_port(name).0, CONTIGO_E_NO_LIBRARY, why);
    }
    refused(try_region(c"cuda", &region_options(0)), CONTIGO_E_NO_LIBRARY, why);
    refused(
        unsafe { contigo_region_open(c"cuda:1".as_ptr(), 64, &mut 0) },
        CONTIGO_E_NO_LIBRARY,
        why,
    );
    refused(unsafe { contigo_device_open(c"cuda".as_ptr(), &mut 0) }, CONTIGO_E_NOT_BUILT_IN, "");
}
