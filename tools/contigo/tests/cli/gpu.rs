//! GPUs, on a driver that stands in for NVIDIA's, and on NVIDIA's own without a GPU.

use super::{HELD_OUT, Outcome, Run, promised};
use contigo_testkit::emulated;
use serde_json::Value;
use std::error::Error;
use tempfile::TempDir;

/// A run with a driver that stands in for NVIDIA's, found as that one is: by its name.
fn with_gpu(args: &[&str]) -> Result<Run, Box<dyn Error>> {
    let folder = TempDir::new()?;
    std::os::unix::fs::symlink(fake_cuda::library(), folder.path().join("libcuda.so.1"))?;
    let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
    let output = command
        .args(args)
        .current_dir(folder.path())
        .env("LD_LIBRARY_PATH", folder.path())
        .output()?;
    Ok(Run { folder, output })
}

#[test]
fn gpu_reads_same_digits_from_cuda_memory() -> Outcome {
    let report =
        with_gpu(&["demo", "--memory", "cuda", "--json", "--trace", "run.json"])?.json()?;
    assert_eq!(
        (&report["images"], &report["jobs"]),
        (&Value::from(HELD_OUT), &Value::from(2 * HELD_OUT))
    );
    assert_eq!(report["correct"], promised("# held-out-correct:")?);
    assert_eq!(&report["mismatches"], &Value::from(0));
    assert_eq!(
        (&report["bytes_copied"], &report["sync_calls"]),
        (&Value::from(0), &Value::from(0))
    );
    assert_eq!(
        (&report["memory"]["backend"], &report["engine"]),
        (&Value::from("cuda-host"), &Value::from("gemm8 as a CUDA kernel"))
    );
    assert_eq!(report["device_time_us_per_image"], Value::Null, "nothing virtual is claimed");
    let audit = report["audit"].as_array().ok_or("no audit")?;
    assert!(audit.iter().any(|row| row["what"] == "map for device"), "{audit:?}");
    Ok(())
}

/// Mesa's and pocl's drivers for the CPU, or this machine's GPU.
#[cfg(feature = "gpu")]
#[test]
fn the_same_digits_through_vulkan_and_opencl() -> Outcome {
    for (memory, engine) in
        [("vulkan", "gemm8 as a compute shader"), ("opencl", "gemm8 as an OpenCL kernel")]
    {
        let run = Run::of(&["demo", "--memory", memory, "--json"])?;
        if run.status() != Some(0)
            && ["cannot be loaded", "there is no such", "ordinal", "number"]
                .iter()
                .any(|why| run.stderr().contains(why))
        {
            emulated::skipped(
                "cli::gpu::the_same_digits_through_vulkan_and_opencl",
                &format!("{memory}: {}", run.stderr().trim()),
            );
            continue;
        }
        let report = run.json()?;
        assert_eq!(
            (&report["images"], &report["jobs"]),
            (&Value::from(HELD_OUT), &Value::from(2 * HELD_OUT)),
            "{memory}"
        );
        assert_eq!(report["correct"], promised("# held-out-correct:")?);
        assert_eq!(
            (&report["mismatches"], &report["bytes_copied"]),
            (&Value::from(0), &Value::from(0)),
            "{memory}"
        );
        assert_eq!(
            (&report["memory"]["backend"], &report["engine"]),
            (&Value::from(memory), &Value::from(engine))
        );
        let wrong = Run::of(&["demo", "--memory", &format!("{memory}:4294967295")])?;
        assert!(
            wrong.status() != Some(0) && wrong.stderr().contains("is 4294967295: it must be"),
            "{}",
            wrong.stderr()
        );
        let engines = Run::of(&["selftest", "--memory", memory])?;
        assert!(
            engines.status() == Some(1)
                && engines.stderr().contains(&format!("contigo demo --memory {memory}")),
            "{}",
            engines.stderr()
        );
    }
    Ok(())
}

#[test]
fn gpus_are_listed_and_what_is_missing_is_said() -> Outcome {
    let report = with_gpu(&["info", "--json"])?.json()?;
    let memory = report["memory"].as_array().ok_or("no memory")?;
    let gpu = memory.iter().find(|offer| offer["name"] == "cuda:0").ok_or("no GPU")?;
    assert_eq!((&gpu["state"], &gpu["coherent"]), (&Value::from("ready"), &Value::from(true)));
    assert!(
        gpu["note"].as_str().is_some_and(|note| note.contains("compute capability 8.7")),
        "{gpu}"
    );
    for (heap, part) in
        [("cuda:1", "the GPU's ordinal"), ("cuda:x", "a number from 0 to 4294967295")]
    {
        let run = with_gpu(&["demo", "--memory", heap])?;
        assert!(run.status() != Some(0) && run.stderr().contains(part), "{heap}: {}", run.stderr());
    }
    let run = with_gpu(&["selftest", "--memory", "cuda"])?;
    assert!(
        run.status() == Some(1) && run.stderr().contains("contigo demo --memory cuda"),
        "{}",
        run.stderr()
    );
    Ok(())
}

/// NVIDIA's own driver, where `tests/cuda/get` has put it into the cache.
#[test]
fn nvidia_driver_without_gpu_is_told_so() -> Outcome {
    use contigo_testkit::nvidia::{self, NoNode};
    let drivers = nvidia::drivers();
    let newest =
        drivers.iter().take(1).map(|driver| (driver, "cuInit: CUDA_ERROR_NO_DEVICE (100)"));
    let too_old = drivers
        .iter()
        .rfind(|driver| driver.too_old())
        .map(|driver| (driver, "CUDA 10.2 (10020) is the oldest driver"));
    if let Some(why) =
        nvidia::may_have_a_gpu().or_else(|| drivers.is_empty().then(|| nvidia::NOT_HERE.into()))
    {
        emulated::skipped("cli::gpu::nvidia_driver_without_gpu_is_told_so", &why);
        return Ok(());
    }
    let _node = NoNode::new();
    for (driver, part) in newest.chain(too_old) {
        let run = |args: &[&str]| -> Result<Run, Box<dyn Error>> {
            let folder = TempDir::new()?;
            let output = driver
                .command(env!("CARGO_BIN_EXE_contigo"))
                .args(args)
                .current_dir(folder.path())
                .output()?;
            Ok(Run { folder, output })
        };
        let report = run(&["info", "--json"])?.json()?;
        let memory = report["memory"].as_array().ok_or("no memory")?;
        let gpu = memory.iter().find(|offer| offer["name"] == "cuda").ok_or("nothing of CUDA")?;
        assert_eq!(gpu["state"], "blocked", "{driver:?}: {gpu}");
        assert!(gpu["note"].as_str().is_some_and(|note| note.contains(part)), "{driver:?}: {gpu}");
        let demo = run(&["demo", "--memory", "cuda"])?;
        assert!(
            demo.status() == Some(1) && demo.stderr().contains(part),
            "{driver:?}: {}",
            demo.stderr()
        );
    }
    Ok(())
}
