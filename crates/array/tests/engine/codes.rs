//! Which codes an array can be created with.

use array::{CreateError, CreateOptions, Store, plan_config};
use format::{CodeKind, SchemeKind};

#[test]
fn a_code_must_fit_the_number_of_parities() {
    for &code in CodeKind::ALL {
        for (scheme, k, m) in [(SchemeKind::Raid, 4, 1), (SchemeKind::Eplog, 4, 2), (SchemeKind::Raid, 3, 3)]
        {
            let options = CreateOptions { code, ..crate::common::create_options(scheme, k, m) };
            let logs = if scheme == SchemeKind::Eplog { m } else { 0 };
            let planned = plan_config(&options, 32 << 20, 32 << 20, logs);
            let fits = match code {
                CodeKind::Xor => m == 1,
                CodeKind::Cauchy => true,
                CodeKind::Rdp => m == 2,
            };
            match planned {
                Ok(config) => {
                    assert!(fits, "{code} {k}+{m}");
                    assert_eq!(Store::new(config).unwrap().code.kind().to_string(), code.to_string());
                }
                Err(CreateError::Code { code: refused, data_count, parity_count }) => {
                    assert!(!fits, "{code} {k}+{m}");
                    assert_eq!((refused, data_count, parity_count), (code, k, m));
                }
                Err(other) => panic!("{code} {k}+{m}: {other}"),
            }
        }
    }
}
