//! Reading objects and images to find those that have changed.

use holm::pool::Pool;
use holm::store::{self, Damage, Looked, Phase, Subject};
use holm_image::check::{self, Identity};

use crate::error::Result;
use crate::report::{self, Report};

/// Checks all objects and images, or `only` these objects.
pub fn check(pool: &Pool, only: &[String]) -> Result<()> {
    let mut report = Report::new();
    let checked = check::objects(&pool.objects_dir(), only, &mut report.of(Phase::Read))?;
    for (object, reason) in checked.damaged {
        report::line(&Damage { subject: Subject::Object(object), reason });
    }
    let images = if only.is_empty() { images(pool)? } else { 0 };
    report::line(&Looked { objects: checked.objects, bytes: checked.bytes, images });
    Ok(())
}

/// Checks the images of bases and guests; their number.
fn images(pool: &Pool) -> Result<u64> {
    let mut count = 0;
    for name in pool.bases()? {
        let dir = pool.base_dir(&name);
        // One without a description is told of by whoever reads that.
        let Ok(base) = store::load(pool, &name) else { continue };
        let identity = Identity::Digest(&base.meta.image_digest);
        count += 1;
        if let Some(reason) = check::image(&base.image, &dir.join("objects"), &identity) {
            report::line(&Damage { subject: Subject::Base(name.to_string()), reason });
        }
    }
    for name in pool.guests()? {
        let disk = pool.guest_dir(&name).join("disk");
        let image = disk.join("image");
        if matches!(image.try_exists(), Ok(false)) {
            continue;
        }
        count += 1;
        if let Some(reason) = check::image(&image, &disk.join("objects"), &Identity::Own) {
            report::line(&Damage { subject: Subject::Guest(name.to_string()), reason });
        }
    }
    Ok(count)
}
