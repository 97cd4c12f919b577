//! Kernels: whole in the cache, or not there at all.

use super::world::{Outcome, Said, World, is_gone, wait, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::Write;
use std::process::Command;

/// make as the lab calls it, in two calls: the configuration, then the kernel. The second call runs
/// the commands in `$HOME/build`.
const MAKE: &str = r#"
for word; do
    case $word in
        check) cd "$2"; . "$HOME/module"; exit 0 ;;
        O=*) out=${word#O=} ;;
        KCONFIG_ALLCONFIG=*) mkdir -p "$out"; cp "${word#*=}" "$out/.config"; [ -f "$HOME/config" ] && . "$HOME/config"; exit 0 ;;
    esac
done
mkdir -p "$out/arch/arm/boot" "$out/include/config" "$out/drivers"
echo "  CC      init/main.o"
echo again >> "$HOME/builds"
echo 6.12.1 > "$out/include/config/kernel.release"
echo kernel > "$out/arch/arm/boot/zImage"
echo objects > "$out/drivers/a.o"
echo symbols > "$out/Module.symvers"
. "$HOME/build"
"#;

fn world(build: &str) -> Result<World, Box<dyn std::error::Error>> {
    let world = World::with_make(MAKE)?;
    fs::write(world.path("build"), build)?;
    Ok(world)
}

/// Nothing that could be taken for a kernel, and nothing left over.
fn nothing_in_the_cache(world: &World) {
    assert_eq!(world.cached("kernels"), [""; 0]);
    assert_eq!(world.cached("unfinished"), [""; 0]);
}

#[test]
fn a_build_is_kept_whole_and_not_repeated() -> Outcome {
    let world = world("exit 0")?;
    for _ in 0..2 {
        world.run(&["kernel", "own"])?.ok().printed(&["own: Linux 6.12.1 in "]);
    }
    assert_eq!(world.text("builds")?.lines().count(), 1);
    let kernel =
        world.path("cache/kernels").join(world.cached("kernels").pop().ok_or("no kernel")?);
    for (file, is_kept) in
        [("arch/arm/boot/zImage", true), ("Module.symvers", true), ("drivers/a.o", false)]
    {
        assert_eq!(kernel.join(file).is_file(), is_kept, "{file}");
    }
    Ok(())
}

#[test]
fn another_configuration_is_another_kernel() -> Outcome {
    let world = world("exit 0")?;
    world.run(&["kernel"])?.ok();
    fs::write(world.path("boards/own/lab/kernel.config"), "CONFIG_MORE=y\n")?;
    world.run(&["kernel"])?.ok();
    world.program("arm-linux-gnueabihf-gcc", "echo 'gcc 100.0'")?;
    world.run(&["kernel"])?.ok();
    assert_eq!(world.cached("kernels").len(), 3);
    Ok(())
}

/// A world with the sources of a module, whose build is this script in the module's folder.
fn world_with_module(build: &str) -> Result<World, Box<dyn std::error::Error>> {
    let world = world("exit 0")?;
    for tool in ["perl", "sparse"] {
        world.program(tool, "exit 1")?;
    }
    for (file, text) in [
        ("module/Kbuild", "obj-m := contigo.o"),
        ("module/contigo_main.c", "int a;"),
        ("uapi/contigo.h", "int b;"),
    ] {
        write(&world.path("helpers").join(file), text.as_bytes())?;
    }
    fs::write(world.path("module"), build)?;
    Ok(world)
}

#[test]
fn module_is_rebuilt_when_sources_change() -> Outcome {
    let world = world_with_module(
        "[ -f Kbuild ] && [ -f ../uapi/contigo.h ] && echo again >> \"$HOME/module-builds\" && cp \
         contigo_main.c contigo.ko",
    )?;
    let built = |times: usize| -> Outcome {
        world.run(&["kernel"])?.ok().printed(&["own: the module contigo in "]);
        assert_eq!(world.text("module-builds")?.lines().count(), times);
        Ok(())
    };
    built(1)?;
    built(1)?;
    // Files that make left behind, run by hand, are no source; another header is another module.
    fs::write(world.path("helpers/module/contigo.mod.c"), "int c;")?;
    built(1)?;
    fs::write(world.path("helpers/uapi/contigo.h"), "long b;")?;
    built(2)
}

#[test]
fn module_warning_fails_and_keeps_nothing() -> Outcome {
    let world = world_with_module(
        "echo 'contigo_main.c:1:5: warning: dereference of noderef expression'; exit 2",
    )?;
    let why = "building and checking the module contigo for own failed (exit status 2)";
    world.run(&["kernel"])?.failed_with(&[why, "dereference of noderef expression"]);
    assert_eq!(world.cached("helpers"), [""; 0]);
    fs::write(world.path("module"), "exit 0")?;
    world.run(&["kernel"])?.failed_with(&["make ended well, but there is no ", "contigo.ko"]);
    assert_eq!(world.cached("helpers"), [""; 0]);
    fs::remove_file(world.path("bin/sparse"))?;
    world.run(&["kernel"])?.failed_with(&["sparse", "cargo lab setup"]);
    Ok(())
}

#[test]
fn failed_build_keeps_nothing_shows_its_end() -> Outcome {
    let world = world("echo 'main.c:7: error: no such thing'; exit 2")?;
    world.run(&["kernel", "own"])?.failed_with(&[
        "building Linux 6.12.1-1 for own failed (exit status 2)",
        "main.c:7: error: no such thing",
        "logs/",
    ]);
    nothing_in_the_cache(&world);
    // With the cause gone, the same command succeeds.
    fs::write(world.path("build"), "exit 0")?;
    world.run(&["kernel", "own"])?.ok();
    Ok(())
}

#[test]
fn a_build_without_its_image_is_no_kernel() -> Outcome {
    let world = world("rm \"$out/arch/arm/boot/zImage\"")?;
    world.run(&["kernel"])?.failed_with(&["there is no arch/arm/boot/zImage"]);
    nothing_in_the_cache(&world);
    Ok(())
}

#[test]
fn an_interrupted_build_leaves_nothing() -> Outcome {
    let world = world("sleep 600 & echo $! > \"$HOME/compiler\"; wait")?;
    let lab = world.lab(&["kernel", "own"]).spawn()?;
    let compiler = world.number("compiler")?;
    kill(Pid::from_raw(i32::try_from(lab.id())?), Signal::SIGINT)?;
    let said = wait(lab)?;
    assert_eq!(said.status, Some(130), "{said:?}");
    assert!(said.err.contains("interrupted"), "{said:?}");
    nothing_in_the_cache(&world);
    assert!(is_gone(compiler), "a program that make had started runs on");
    Ok(())
}

#[test]
fn two_runs_build_a_kernel_once() -> Outcome {
    let world = world("sleep 1; exit 0")?;
    let both = [world.lab(&["kernel"]).spawn()?, world.lab(&["kernel"]).spawn()?];
    for lab in both {
        wait(lab)?.ok();
    }
    assert_eq!(world.text("builds")?.lines().count(), 1);
    Ok(())
}

#[test]
fn untaken_kernel_option_is_a_named_error() -> Outcome {
    let world = world("exit 0")?;
    fs::write(world.path("boards/own/lab/kernel.config"), "CONFIG_MORE=y\n")?;
    fs::write(world.path("config"), "echo '# CONFIG_MORE is not set' > \"$out/.config\"")?;
    world.run(&["kernel"])?.failed_with(&[
        "this kernel does not take",
        "CONFIG_MORE=y",
        "CONFIG_DMA_SHARED_BUFFER=y",
    ]);
    nothing_in_the_cache(&world);
    Ok(())
}

#[test]
fn a_full_disk_is_called_one() -> Outcome {
    let world = world("dd if=/dev/zero of=\"$out/vmlinux.o\" bs=65536 || exit 2")?;
    let small = world.path("small");
    fs::create_dir(&small)?;
    let tmpfs = ["-t", "tmpfs", "-o", "size=2m", "none"];
    let mounted = Command::new("mount").args(tmpfs).arg(&small).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        let why = "a small disk can be mounted by root only";
        writeln!(std::io::stderr(), "SKIPPED: a_full_disk_is_called_one: {why}")?;
        return Ok(());
    }
    let moved = Command::new("cp").arg("-r").arg(world.path("cache/sources")).arg(&small).status();
    let said = world.lab(&["kernel"]).env("CONTIGO_CACHE", &small).output();
    let kernels = fs::read_dir(small.join("kernels")).map_or(0, Iterator::count);
    // Before anything that may fail: a mount outlives a test.
    let unmounted = Command::new("umount").arg(&small).status()?;
    assert!(unmounted.success() && moved?.success());
    Said::new(&said?).failed_with(&["is full", "CONTIGO_CACHE"]);
    assert_eq!(kernels, 0);
    Ok(())
}

/// A world without the kernel's source, and what is put into the cache by hand.
fn without_source() -> Result<World, Box<dyn std::error::Error>> {
    let world = world("exit 0")?;
    fs::remove_dir_all(world.path("cache/sources"))?;
    Ok(world)
}

const BY_HAND: &str = "cache/packages/linux-source-6.12_6.12.9-1_all.deb";

#[test]
fn missing_source_tells_where_to_put_it() -> Outcome {
    let world = without_source()?;
    let place = ["linux-source-6.12", "linux-source-6.12_*.deb", "cache/packages"];
    let said = world.run(&["kernel"])?;
    said.failed_with(&["this machine has no apt"]);
    said.failed_with(&place);
    // What apt refuses is said in its words.
    world.program("dpkg-deb", "exit 1")?;
    let apt = "for word; do [ \"$word\" = update ] && exit 0; done; echo 'E: Unable to locate \
               package linux-source-6.12'; exit 100";
    world.program("apt-get", apt)?;
    let refused = ["Unable to locate package", "linux-source-6.12", "cache/packages"];
    world.run(&["kernel"])?.failed_with(&refused);
    nothing_in_the_cache(&world);
    Ok(())
}

#[test]
fn package_placed_by_hand_needs_no_network() -> Outcome {
    let world = without_source()?;
    write(&world.path(BY_HAND), b"a package")?;
    // The folder gets the date that it has in the package.
    let dpkg = "case $1 in -f) echo 6.12.9-1 ;; -x) mkdir -p \"$3/usr/src\"; touch \
                \"$3/usr/src/linux-source-6.12.tar.xz\"; touch -d 2020-01-01 \"$3\" ;; esac";
    world.program("dpkg-deb", dpkg)?;
    // tar -x --strip-components=1 -f ARCHIVE -C FOLDER
    world.program("tar", "[ -f \"$4\" ] && touch \"$6/Makefile\"")?;
    world.run(&["kernel"])?.ok();
    assert!(world.cached("sources").contains(&"linux-source-6.12_6.12.9-1".to_owned()));
    Ok(())
}

#[test]
fn a_source_that_is_not_whole_is_not_kept() -> Outcome {
    let world = without_source()?;
    write(&world.path(BY_HAND), b"a package")?;
    world.program("dpkg-deb", "case $1 in -f) echo 6.12.9-1 ;; esac")?;
    world.program("tar", "touch \"$6/half\"; echo 'xz: Unexpected end of input'; exit 2")?;
    let failed = "unpacking linux-source-6.12 6.12.9-1 failed";
    world.run(&["kernel"])?.failed_with(&[failed, "Unexpected end of input"]);
    world.program("tar", "exit 0")?;
    world.run(&["kernel"])?.failed_with(&["it has no Makefile"]);
    assert_eq!(world.cached("sources"), [""; 0]);
    nothing_in_the_cache(&world);
    Ok(())
}
