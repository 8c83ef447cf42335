"""The archives as parts of the role worker."""

from statesvc.addons.archive.body_archiver import BodyArchiver
from statesvc.addons.archive.log_archiver import LogArchiver
from statesvc.files.archive_folder import archive_folder
from statesvc.roles.runtime import Launch, Runtime
from statesvc.roles.shutdown import Component


def archive_jobs(launch: Launch, base: Runtime) -> list[Component]:
    """Return what archives bodies, and months of the log where that is set; nothing where there is no place for archives."""
    settings = launch.settings
    folder = archive_folder(settings)
    if folder is None:
        return []
    bodies = BodyArchiver(
        base.dsns.listen,
        folder=folder,
        keyring=base.keyring,
        settings=settings.archive,
        telemetry=base.telemetry,
    )
    jobs = [Component(name="archiver", run=bodies.run, stop=bodies.stop)]
    if settings.archive.log_hot_months is not None:
        months = LogArchiver(
            base.dsns.listen,
            hot_months=settings.archive.log_hot_months,
            telemetry=base.telemetry,
        )
        jobs.append(Component(name="log archiver", run=months.run, stop=months.stop))
    return jobs
