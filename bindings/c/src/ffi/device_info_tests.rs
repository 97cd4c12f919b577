//! A guarded device from C, on a fake of the kernel module: registers, interrupt and facts of one
//! opening.

use super::*;
use crate::{
    ffi::{
        device::{contigo_device_close, contigo_device_memory, contigo_device_reset},
        engine::{
            contigo_engine_arm, contigo_engine_close, contigo_engine_open, contigo_engine_options,
        },
        port::{contigo_port_close, contigo_port_find},
        region::contigo_region_close,
        registers::{
            contigo_device_attach, contigo_register, contigo_registers_close,
            contigo_registers_read, contigo_registers_wait, contigo_registers_write,
        },
    },
    object::device::Opened,
    status::{CONTIGO_E_NEEDS_DEVICE, CONTIGO_E_OS, CONTIGO_E_STILL_USED, CONTIGO_OK},
};
use contigo_testkit::{
    fake_devices::FakeDevices,
    fake_guard::{Event, FakeGuard, GuardConfig, NAME},
};
use std::{error::Error, sync::Arc};

const WORD: contigo_register = contigo_register { offset_bytes: 8, access: 0 };

fn info_of(device: u64) -> (contigo_status, contigo_device_info) {
    let mut info =
        contigo_device_info { struct_size: size_of::<contigo_device_info>(), ..Default::default() };
    // SAFETY: the pointer is a reference.
    (unsafe { contigo_device_get_info(device, &raw mut info) }, info)
}

#[test]
fn one_opening_serves_registers_interrupt_and_reset() -> Result<(), Box<dyn Error>> {
    let tree = FakeDevices::new();
    tree.folder(&format!("sys/class/contigo/{NAME}"));
    let kernel =
        FakeGuard::new(GuardConfig { can_reset: true, windows: 2, ..GuardConfig::default() });
    let name: contigo::names::DeviceName = "guard:gemm8".parse()?;
    // SAFETY: no driver is made of it that gives memory back.
    let opened =
        unsafe { name.open_guard_with(tree.root().to_owned().leak(), Arc::new(kernel.clone())) }?;
    let device = DEVICES.insert(Opened::alone(opened)).map_err(|_| "the table is full")?;
    let (mut port, mut registers, mut word) = (0, 0, 0);
    // SAFETY: the name is a text; here and below the pointers are references, and the device is a
    // fake, which touches no memory.
    unsafe {
        assert_eq!(contigo_port_find(c"zynq-hp0".as_ptr(), &raw mut port), CONTIGO_OK);
        for (window, polled) in [(1, 1), (0, 0)] {
            kernel.set_register(window, 8, 70 + window);
            assert_eq!(
                contigo_device_attach(device, port, window, polled, &raw mut registers),
                CONTIGO_OK
            );
            assert_eq!(
                (contigo_registers_read(registers, WORD, &raw mut word), word),
                (CONTIGO_OK, 70 + window)
            );
            assert_eq!(contigo_registers_write(registers, WORD, 9), CONTIGO_OK);
            assert_eq!(kernel.register(window, 8), 9);
            kernel.interrupt(0);
            assert_eq!(contigo_registers_wait(registers, 60_000_000), CONTIGO_OK);
            assert_eq!(contigo_device_close(device), CONTIGO_E_STILL_USED);
            assert_eq!(contigo_registers_close(registers), CONTIGO_OK);
        }
        let (status, info) = info_of(device);
        assert_eq!(
            (
                status,
                info.is_guarded,
                info.can_reset,
                info.is_confined,
                info.is_armed,
                info.window_len_bytes[..3].to_vec()
            ),
            (CONTIGO_OK, 1, 1, 0, 0, vec![0x1000, 0x1000, 0])
        );
        // An engine leaves its stop with the kernel. UG1087, ZDMA_CH_DATA_ATTR after reset: by that
        // the driver knows its channel.
        kernel.set_register(0, 0x120, 0x0483_D20F);
        let mut engine = 0;
        let options = contigo_engine_options {
            struct_size: size_of::<contigo_engine_options>(),
            driver: c"zdma".as_ptr(),
            device,
            port,
            polled: 1,
            ..mem::zeroed() // integers and pointers
        };
        assert_eq!(contigo_engine_open(&raw const options, &raw mut engine), CONTIGO_OK);
        assert_eq!((contigo_engine_arm(engine, 0), info_of(device).1.is_armed), (CONTIGO_OK, 1));
        assert_eq!(contigo_engine_close(engine), CONTIGO_OK);
        let mut region = 0;
        for (memory, expected) in [
            (c"guard", CONTIGO_OK),
            (c"guard:gemm8", CONTIGO_OK),
            (c"guard:other", CONTIGO_E_NEEDS_DEVICE),
        ] {
            assert_eq!(
                contigo_device_memory(device, memory.as_ptr(), 1 << 16, &raw mut region),
                expected,
                "{memory:?}"
            );
            if expected == CONTIGO_OK {
                assert_eq!(
                    (kernel.imports(), contigo_region_close(region), kernel.imports()),
                    (1, CONTIGO_OK, 0)
                );
            }
        }
        assert_eq!(contigo_device_reset(device), CONTIGO_OK);
        assert_eq!(kernel.log().last(), Some(&Event::Reset));
        kernel.take_away();
        assert_eq!((contigo_device_reset(device), info_of(device).0), (CONTIGO_E_OS, CONTIGO_E_OS));
    }
    assert_eq!((contigo_device_close(device), contigo_port_close(port)), (CONTIGO_OK, CONTIGO_OK));
    Ok(())
}
