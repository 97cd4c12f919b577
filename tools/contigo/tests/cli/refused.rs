//! Memory and engines that are not there: status 1, and one line that says what is.

use super::{Outcome, Run};

#[test]
fn missing_engine_is_told_existing_ones() -> Outcome {
    let run = Run::of(&["selftest", "--device", "uio:no-such-node"])?;
    assert_eq!(run.status(), Some(1));
    let message = run.stderr();
    assert!(
        message.starts_with("contigo: --device uio:no-such-node: ") && message.lines().count() == 1,
        "{message}"
    );
    assert!(
        message.contains("no such UIO device")
            && message.contains("; sim:ap_ctrl; ")
            && message.ends_with("; contigo info lists the rest\n")
            && message.matches("; ").count() <= 10,
        "{message}"
    );
    let cases: &[(&[&str], &str)] = &[
        (
            &["selftest", "--dev-mem", "0xf8003000"],
            "--dev-mem ADDR needs --driver NAME, and no device",
        ),
        (
            &["selftest", "--driver", "pl330", "--dev-mem", "0x12345000"],
            "name its port with --port",
        ),
        (
            &["selftest", "--driver", "pl330", "--dev-mem", "0xf8003000", "--port", "hp9"],
            "there are cyclone-v-acp, ",
        ),
        (
            &["selftest", "--driver", "pl330", "--dev-mem", "0xf8003000", "--memory", "sim"],
            "does not see --memory sim",
        ),
        (
            &["selftest", "--memory", "dma-heap:no-such-heap"],
            "open(/dev/dma_heap/) failed: errno 2, ENOENT: no such file or directory; this machine \
             has ",
        ),
        (&["selftest", "--driver", "zdma"], "no device here is known to be one"),
        (&["selftest", "--memory", "contigo:no-such-device"], "--device contigo:no-such-device: "),
        (&["selftest", "--memory", "vfio:ffff:1f:1f.7"], "--device vfio:ffff:1f:1f.7: "),
        (
            &["selftest", "--device", "sim:zdma", "--port", "zynq-hp0"],
            "leave it out for this one: simulated zdma",
        ),
        (&["selftest", "--device", "sim:board"], "say with --driver what it is: axi_dma, "),
    ];
    for (args, said) in cases {
        let run = Run::of(args)?;
        assert_eq!(run.status(), Some(1), "{args:?}");
        assert!(
            run.stderr().contains(said) && run.stderr().lines().count() == 1,
            "{args:?}: {}",
            run.stderr()
        );
        assert!(run.stdout().is_empty(), "{args:?}");
    }
    Ok(())
}

#[test]
fn unknown_memory_is_answered_with_what_exists() -> Outcome {
    for memory in ["u-dma-buf:no-such-device", "dma-heap:no-such-heap", "vfio:ffff:1f:1f.7"] {
        let run = Run::of(&["demo", "--memory", memory])?;
        assert_eq!(run.status(), Some(1), "{memory}");
        let message = run.stderr();
        assert!(
            message.starts_with(&format!("contigo: --memory {memory}: "))
                && message.lines().count() == 1,
            "{message}"
        );
        assert!(message.contains("; this machine has ") && message.contains("; sim"), "{message}");
        assert!(run.stdout().is_empty() && !run.file("contigo-demo.png").exists());
    }
    Ok(())
}
