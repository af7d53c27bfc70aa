//! One kernel, compiled twice: for the baseline of the target and, on x86-64, for AVX2, chosen when it is called.
//!
//! A build for plain x86-64 may only use SSE2, which leaves half the speed of the numeric loops behind. The loops are
//! ordinary safe code; `widest!` merely lets the compiler see a wider machine where there is one.

/// Declares functions whose bodies are compiled for the baseline and for AVX2. They return nothing: they fill slices.
macro_rules! widest {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($arg: $ty),*) {
                    body($($arg),*);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    #[expect(unsafe_code, reason = "a function with target features is called")]
                    // SAFETY: `wide` needs AVX2 and nothing else, and the processor has just said that it has it.
                    unsafe {
                        wide($($arg),*);
                    }
                    return;
                }
            }
            body($($arg),*);
        }
    )* };
}

pub(crate) use widest;
