//! Memory, engines and lines that are not there: status 1, and one line that says what is.

use super::{Outcome, Run};

#[test]
fn missing_engine_is_told_existing_ones() -> Outcome {
    let message = Run::of(&["selftest", "--device", "uio:no-such-node"])?
        .refuses("contigo: --device uio:no-such-node: ")
        .complains(&["no such UIO device", "; sim:ap_ctrl; ", "; contigo info lists the rest\n"])
        .stderr();
    assert!(message.matches("; ").count() <= 10, "{message}");
    let pl330 = ["selftest", "--driver", "pl330", "--dev-mem"];
    let cases: &[(&[&str], &str)] = &[
        (
            &["selftest", "--dev-mem", "0xf8003000"],
            "--dev-mem ADDR needs --driver NAME, and no device",
        ),
        (&[&pl330[..], &["0x12345000"]].concat(), "name its port with --port"),
        (&[&pl330[..], &["0xf8003000", "--port", "hp9"]].concat(), "there are cyclone-v-acp, "),
        (&[&pl330[..], &["0xf8003000", "--memory", "sim"]].concat(), "does not see --memory sim"),
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
        (&["selftest", "--port", "nowhere"], "--port nowhere: "),
        (&["selftest", "--device", "sim:board"], "say with --driver what it is: axi_dma, "),
    ];
    for (args, why) in cases {
        Run::of(args)?.refuses(why);
    }
    Ok(())
}

#[test]
fn unknown_memory_is_answered_with_what_exists() -> Outcome {
    for memory in ["u-dma-buf:no-such-device", "dma-heap:no-such-heap", "vfio:ffff:1f:1f.7"] {
        let run = Run::of(&["demo", "--memory", memory])?
            .refuses(&format!("contigo: --memory {memory}: "))
            .complains(&["; this machine has ", "; sim"]);
        assert!(!run.file("contigo-demo.png").exists());
    }
    Ok(())
}

#[test]
fn missing_reset_line_is_refused() -> Outcome {
    let line = ["reset", "gpiochip99:5"];
    let rows = [
        (&["--active", "low"][..], "no line is called gpiochip99:5"),
        (&["--active", "low", "--dry-run"], "no line is called gpiochip99:5"),
        (&[], "--active low"),
        (&["--active", "low", "--pulse-us", "1000001"], "1 to 1000000"),
    ];
    for (options, why) in rows {
        Run::of(&[&line, options].concat())?.refuses(why);
    }
    Run::of(&["reset", "contigo:nothing@1234"])?
        .refuses("no device is called contigo:nothing@1234");
    Run::of(&["reset", "contigo:a", "--pulse-us", "5"])?.refuses("are a GPIO's");
    Ok(())
}
