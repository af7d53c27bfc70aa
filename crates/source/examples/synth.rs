//! Writes built-in scenes as a data set: `synth KIND COUNT SEED OUT`, with KIND `rgb` or `thermal`.
#![expect(clippy::disallowed_macros, reason = "a tool for developers, whose output nobody cuts short")]

use std::path::Path;
use std::process::ExitCode;

use prony_source::synth;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count, seed, out] = args.as_slice() else {
        eprintln!("usage: synth KIND COUNT SEED OUT");
        return ExitCode::from(2);
    };
    let (Ok(kind), Ok(count), Ok(seed)) = (kind.parse(), count.parse(), seed.parse()) else {
        eprintln!("KIND is rgb or thermal, COUNT and SEED are whole numbers");
        return ExitCode::from(2);
    };
    match synth::write(kind, count, seed, Path::new(out), &|_| true) {
        Ok(done) => {
            println!("{}: {} images, {} objects", done.out.display(), done.images, done.objects);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
