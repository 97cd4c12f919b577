//! Contigo devices by their names: registers, interrupt and memory of one opening.

use super::{POLLED, PORT, device, lines, open, row, wired};
use contigo::job::{AnyDriver, Descriptors, Parts, Settings};
use contigo::names::{Attach, Inventory, OpenDevice};
use contigo::{Align, Backend as _, Error, Mmio, PhysAddr, Port, Queue, Region, Wait};
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode};
use contigo_testkit::fake_devices::FakeDevices;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

/// A tree with these contigo devices, each with its node where it has one.
fn tree(dev_nodes: &[(&str, &str)]) -> FakeDevices {
    let tree = FakeDevices::new();
    for (dev_node, node) in dev_nodes {
        tree.folder(&format!("sys/class/contigo/{dev_node}/device"));
        if !node.is_empty() {
            tree.link(
                &format!("sys/class/contigo/{dev_node}/device/of_node"),
                &format!("../../firmware/devicetree/base/{node}"),
            );
        }
    }
    tree
}

/// Opens the contigo device `name`, which a fake of the module has as `config` says.
fn open_dev_node(
    tree: &FakeDevices,
    config: DevNodeConfig,
    name: &str,
) -> Result<(OpenDevice, FakeDevNode), Error> {
    let dev_node = FakeDevNode::new(config);
    let root = tree.root().to_owned().leak();
    // SAFETY: no driver is made of it that gives memory back.
    Ok((unsafe { device(name).open_dev_node_with(root, Arc::new(dev_node.clone())) }?, dev_node))
}

fn bound(name: &'static str) -> DevNodeConfig {
    DevNodeConfig { name, ..DevNodeConfig::default() }
}

#[test]
fn contigo_device_alone_serves_registers_and_interrupt() {
    let tree = tree(&[("40010040.engine", "engine@40010040")]);
    let config = DevNodeConfig { windows: 2, interrupts: 2, ..bound("40010040.engine") };
    let (opened, dev_node) = open_dev_node(&tree, config, "contigo:40010040").unwrap();
    assert_eq!((opened.addr(), opened.port()), (Some(PhysAddr(0x4001_0040)), None));
    for window in [0, 1, 0] {
        dev_node.set_register(window, 4, 70 + window);
        let window = u8::try_from(window).unwrap();
        let driver = wired(&opened, Attach { window, ..POLLED }).unwrap();
        assert_eq!((driver.read32(4), driver.len_bytes()), (70 + u32::from(window), 0x1000));
        assert!(driver.interrupt().is_none());
        assert_eq!(wired(&opened, POLLED).unwrap_err(), Error::HasDriver);
    }
    for window in [2, 6, 255] {
        let refused = wired(&opened, Attach { window, ..POLLED }).unwrap_err();
        assert!(
            matches!(refused, Error::NotFound { .. } | Error::Argument { name: "window", .. }),
            "{window}: {refused}"
        );
    }
    assert_eq!(dev_node.log(), [], "a polled device asks the kernel nothing");
    let driver = wired(&opened, Attach::default()).unwrap();
    let bell = driver.irq().unwrap().unwrap();
    assert_eq!(driver.arm_irq(), Ok(Some(driver.interrupt().unwrap().as_raw_fd())));
    dev_node.interrupt(0);
    assert_eq!((driver.wait_at_most(60_000_000), bell.interrupts()), (Ok(()), 0));
    assert!(bell.as_fd().try_clone_to_owned().is_ok());
    // SAFETY: no device.
    unsafe { opened.enable_bus_master().unwrap() };
    dev_node.log();
    drop((bell, driver));
    drop(opened);
    assert_eq!(dev_node.log(), [Event::Closed { kept: 0 }]);
}

#[test]
fn a_contigo_device_is_found_by_its_address_and_its_node() {
    let two = tree(&[
        ("40000000.gemm8", "gemm8@0"),
        ("f8003000.dma-controller", ""),
        ("soc:mixer", "mixer"),
        ("adc.0", ""),
    ]);
    for (bound_as, names) in [
        (
            "40000000.gemm8",
            ["40000000.gemm8", "40000000", "gemm8", "gemm8@40000000", "gemm8@0"].as_slice(),
        ),
        (
            "f8003000.dma-controller",
            &["f8003000.dma-controller", "f8003000", "dma-controller", "dma-controller@f8003000"],
        ),
        ("soc:mixer", &["soc:mixer", "mixer"]),
        ("adc.0", &["adc.0"]),
    ] {
        for name in names {
            let (opened, _dev_node) =
                open_dev_node(&two, bound(bound_as), &format!("contigo:{name}")).unwrap();
            let own_heap = format!("dma-heap:no-such-heap@contigo:{}", names[0]);
            let refused = opened.memory(&own_heap.parse().unwrap(), 4096).map(drop).unwrap_err();
            // It is its own memory.
            assert!(!matches!(refused, Error::NeedsDevice { .. }), "{name}: {refused}");
            for own in ["contigo".to_owned(), format!("contigo:{}", names[0])] {
                let block = opened.memory(&own.parse().unwrap(), 4096).unwrap();
                let whole_pages = block.mapping().len_bytes % 4096 == 0;
                assert_eq!((block.name(), whole_pages), ("contigo", true), "{name}: {own}");
            }
            for other in ["contigo:other", "dma-heap:no-such-heap@contigo:other"] {
                let refused = opened.memory(&other.parse().unwrap(), 4096).map(drop);
                assert!(matches!(refused, Err(Error::NeedsDevice { .. })), "{other}");
            }
        }
    }
    for name in [
        "4000000",
        "gemm",
        "gemm8@",
        "@40000000",
        "gemm8@40000000.",
        "40000000.",
        "adc",
        "0",
        "dma-controller@F8003000",
        "+0",
    ] {
        let refused = open_dev_node(&two, DevNodeConfig::default(), &format!("contigo:{name}"));
        let what = "device that is bound to the kernel module contigo";
        assert_eq!(refused.map(drop), Err(Error::NotFound { what, among: 4.into() }), "{name}");
    }
}

#[test]
fn two_contigo_device_of_one_node_need_the_address() {
    let what = "device that is bound to the kernel module contigo";
    let alike = tree(&[("40000000.gemm8", "gemm8@40000000"), ("40010000.gemm8", "gemm8@40010000")]);
    let refused = open_dev_node(&alike, DevNodeConfig::default(), "contigo:gemm8").map(drop);
    assert_eq!(refused, Err(Error::Ambiguous { what, matches: 2 }));
    for name in ["contigo:gemm8@40010000", "contigo:40010000"] {
        assert!(open_dev_node(&alike, bound("40010000.gemm8"), name).is_ok(), "{name}");
    }
    // A device whose whole name is another one's node.
    // The folder may list any of them first.
    let alike: Vec<_> =
        (0..9).map(|at| (format!("4000000{at}.gemm8"), format!("gemm8@4000000{at}"))).collect();
    let mut all: Vec<_> =
        alike.iter().map(|(device, node)| (device.as_str(), node.as_str())).collect();
    all.push(("gemm8", "pl@0"));
    assert!(open_dev_node(&tree(&all), bound("gemm8"), "contigo:gemm8").is_ok());
}

#[test]
fn unconfined_device_says_what_opens_it() {
    const RAWIO: &str = "contigo:40000000.gemm8, but nothing confines it: be root, give the program \
        CAP_SYS_RAWIO, or load the module contigo with \
         unprivileged=1";
    let listed = |unprivileged: &str, capabilities: &str, iommu: bool| {
        let tree = tree(&[("40000000.gemm8", "gemm8@40000000")]);
        tree.file("dev/contigo/40000000.gemm8", "");
        tree.file("sys/module/contigo/parameters/unprivileged", unprivileged);
        tree.file("proc/self/status", format!("Name:\ttest\nCapEff:\t{capabilities}\n"));
        if iommu {
            tree.folder("sys/class/contigo/40000000.gemm8/device/iommu_group");
        }
        let entry =
            Inventory::under(tree.root()).devices().find(|entry| entry.kind == "contigo").unwrap();
        assert_eq!(entry.facts.addr, Some(0x4000_0000));
        entry.to_string()
    };
    let ready = "contigo:40000000.gemm8";
    assert_eq!(listed("N\n", "0000000000000000", false), RAWIO);
    assert_eq!(listed("N\n", "fffffffffffdffff", false), RAWIO, "all but that one");
    assert_eq!(listed("N\n", "0000000000020000", false), ready);
    assert_eq!(listed("Y\n", "0000000000000000", false), ready);
    assert_eq!(listed("N\n", "0000000000000000", true), ready, "opening tells");
    assert_eq!(listed("N\n", "junk", false), ready, "what the program may do is not known");
}

#[test]
fn contigo_device_memory_and_aliases_answer_as_contigo_device() {
    let tree = tree(&[("40000000.gemm8", "gemm8@40000000"), ("50000000.gemm9", "gemm9@50000000")]);
    for file in
        ["dev/contigo/40000000.gemm8", "dev/contigo/50000000.gemm9", "dev/dma_heap/linux,cma"]
    {
        tree.file(file, "");
    }
    tree.file("sys/module/contigo/parameters/unprivileged", "N\n");
    tree.file("proc/self/status", "Name:\ttest\nCapEff:\t0000000000000000\n");
    tree.folder("sys/class/contigo/50000000.gemm9/device/iommu_group");
    let inventory = Inventory::under(tree.root());
    for before in ["", "dma-heap:linux,cma@"] {
        let memory = |dev_node: &str| {
            lines(inventory.memories())
                .into_iter()
                .find(|line| line.starts_with(&format!("{before}{dev_node}")))
                .unwrap()
        };
        assert!(memory("contigo:40000000.gemm8").contains("CAP_SYS_RAWIO"), "{before}");
        assert!(!memory("contigo:50000000.gemm9").contains(", but"), "{before}");
    }
    let os = Error::Os { call: "open(/dev/contigo/)", errno: nix::libc::EPERM };
    for alias in ["40000000.gemm8", "40000000", "gemm8", "gemm8@40000000"] {
        let said = inventory.device_error(&device(&format!("contigo:{alias}")), os).to_string();
        assert!(said.contains("CAP_SYS_RAWIO"), "{alias}: {said}");
    }
}

/// Opens a driver with a page for descriptors, where `region` has it.
fn listed(
    device: &OpenDevice,
    port: Option<Port>,
    settings: &str,
    region: Option<&Region>,
) -> Result<AnyDriver, Error> {
    let memory = region.map(|region| region.alloc(4096, Align::PAGE).unwrap());
    let settings = Settings(settings);
    // SAFETY: the registers are the fake's, which has no engine, or a ZDMA's model.
    unsafe {
        let taken = device.take(row("zdma").unwrap(), settings, port, POLLED)?;
        taken.open(Parts { device: (), memory, settings, map: None })
    }
}

#[test]
fn descriptors_are_coherent_where_the_port_does_not_snoop() {
    const ALLOC: &str = "ioctl(CONTIGO_ALLOC)";
    let tree = tree(&[("fd500000.dma", "dma@fd500000")]);
    let opened = |coherent, refuse| {
        let config = DevNodeConfig { coherent, ..bound("fd500000.dma") };
        let (device, kernel) = open_dev_node(&tree, config, "contigo:fd500000").unwrap();
        let region = Region::new(device.memory(&super::memory("contigo"), 1 << 16).unwrap());
        let region = region.unwrap();
        kernel.log();
        if let Some(errno) = refuse {
            kernel.refuse(ALLOC, errno);
        }
        let port = Port { coherent, ..PORT };
        move |settings: &str, given: bool| {
            let given = given.then_some(&region);
            let driver = listed(&device, Some(port), settings, given)?;
            let descriptors = driver.descriptors();
            let is_free = region.alloc(1 << 16, Align::PAGE).is_ok();
            let coherent = kernel.log().iter().any(|event| {
                matches!(event, Event::Allocated { coherent: true, len_bytes: 4096.., .. })
            });
            drop(driver);
            Ok::<_, Error>((descriptors, coherent, is_free))
        }
    };
    let coherent = Some(Descriptors::Coherent);
    let synced = |refused| Some(Descriptors::Synced { refused });
    for (settings, given, found) in [
        ("", true, (coherent, true, true)),
        ("coherent_memory=1", true, (coherent, true, true)),
        ("coherent_memory=1", false, (coherent, true, true)),
        ("coherent_memory=0", true, (synced(None), false, false)),
        ("coherent_memory=0", false, (None, false, true)),
        ("", false, (None, false, true)),
    ] {
        assert_eq!(opened(false, None)(settings, given), Ok(found), "{settings} {given}");
    }
    for settings in ["", "coherent_memory=0"] {
        let snooped = opened(true, None)(settings, true).map(|it| (it.0, it.1));
        assert_eq!(snooped, Ok((Some(Descriptors::Snooped), false)));
    }
    let own = opened(true, None)("coherent_memory=1", false).map(|it| (it.0, it.1));
    assert_eq!(own, Ok((Some(Descriptors::Snooped), true)));

    // The kernel has none: what the program gave, unless it asked for coherent memory alone.
    for errno in [nix::libc::ENOMEM, nix::libc::EDQUOT, nix::libc::ENOSPC] {
        let (found, ..) = opened(false, Some(errno))("", true).unwrap();
        let Some(Descriptors::Synced { refused: Some(error) }) = found else { panic!("{found:?}") };
        assert!(found.unwrap().to_string().starts_with("synced, not coherent: "), "{found:?}");
        let refused = opened(false, Some(errno))("coherent_memory=1", true).map(drop);
        assert_eq!(refused, Err(error));
    }
    let gone = Error::Os { call: ALLOC, errno: nix::libc::ENODEV };
    assert_eq!(opened(false, Some(nix::libc::ENODEV))("", true).map(drop), Err(gone));
    let bad = opened(false, None)("coherent_memory=2", true).map(drop).unwrap_err();
    assert!(matches!(bad, Error::Argument { name: "coherent_memory", value: 2, .. }), "{bad}");
}

/// Coherent memory that the device does not reach is no reason to refuse the driver.
#[test]
fn unreached_coherent_memory_leaves_the_given_one() {
    let tree = tree(&[("fd500000.dma", "dma@fd500000")]);
    let memory = |port: Port, driver: &str, settings: &str| {
        let (device, _kernel) =
            open_dev_node(&tree, bound("fd500000.dma"), "contigo:fd500000").unwrap();
        let region = Region::new(device.memory(&super::memory("contigo"), 1 << 16).unwrap());
        let region = region.unwrap();
        let given = region.alloc(1 << 16, Align::PAGE).unwrap();
        let port = device.seen_through(port);
        device
            .driver_memory(row(driver).unwrap(), Settings(settings), &port, Some(given))
            .map(|(_, found)| (found.unwrap(), region.alloc(1 << 16, Align::PAGE).is_ok()))
    };
    // The fake's first memory is at 256 MiB, and the next one 16 MiB higher.
    let short = Port { window: (0, 0x100F_FFFF), ..PORT };
    for (port, driver, limit) in
        [(short, "zdma", ""), (PORT, "msgdma", "address_bits=24"), (short, "axi_dma", "")]
    {
        let (found, is_free) = memory(port, driver, limit).unwrap();
        let Descriptors::Synced { refused: Some(error @ Error::Unreachable { .. }) } = found else {
            panic!("{driver}: {found:?}")
        };
        assert!(!is_free, "{driver}: the program's memory came back");
        let asked = format!("coherent_memory=1,{limit}");
        assert_eq!(memory(port, driver, asked.trim_end_matches(',')), Err(error), "{driver}");
    }
    let high = Port { offset: 1 << 32, addr_bits: 40, window: (0, u64::MAX), ..PORT };
    for (settings, reached) in [("", false), ("address_bits=40", true), ("address_bits=32", false)]
    {
        let (found, is_free) = memory(high, "axi_dma", settings).unwrap();
        assert_eq!((found == Descriptors::Coherent, is_free), (reached, reached), "{settings}");
    }
}

/// A simulated board has such memory where it is asked for, and a UIO device has none.
#[test]
fn other_devices_keep_the_given_memory() {
    let opened = device("sim:zdma").open().unwrap();
    let region = Region::new(opened.memory(&super::memory("sim"), 1 << 16).unwrap()).unwrap();
    for (settings, expected, syncs) in [
        ("", Descriptors::Synced { refused: None }, true),
        ("coherent_memory=1", Descriptors::Coherent, false),
    ] {
        let before = region.stats().syncs;
        let driver = listed(&opened, None, settings, Some(&region)).unwrap();
        assert_eq!(driver.descriptors(), Some(expected));
        assert_eq!(region.stats().syncs > before, syncs);
        let mut queue = Queue::new(driver, 2).unwrap();
        let [mut from, to] = [(); 2].map(|()| region.alloc(256, Align::LINE).unwrap());
        from.view_mut::<u8>().unwrap().fill(7);
        let operands = [from.to_device(..), to.from_device(..)];
        let [_, to] = queue.run(operands, &[], Duration::from_millis(20)).unwrap().buffers;
        assert!(to.view::<u8>().unwrap() == [7; 256]);
        assert_eq!(opened.board().unwrap().counts().unowned_accesses, 0);
    }
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    let opened = open(&tree, "uio:dma").unwrap();
    let refused = listed(&opened, Some(PORT), "coherent_memory=1", None).map(drop).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("contigo"), "{refused}");
}
