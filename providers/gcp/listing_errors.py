"""What Google's clients raise while a listing is read, as ProviderErrors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from requests import exceptions as http

from providers.errors import AmbiguousError, PermissionDeniedError, TemplateError, ThrottledError, UnclassifiedError

_CREDENTIALS_STEP = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"


@contextmanager
def translated(what: str, permission: str) -> Iterator[None]:
    """Raise ProviderErrors, the cause chained. `permission` is the IAM permission (or API) that `what` needs."""
    try:
        yield
    except (auth.GoogleAuthError, api.Unauthorized) as error:
        raise PermissionDeniedError(
            f"{what}: {error}", code=type(error).__name__, next_step=_CREDENTIALS_STEP
        ) from error
    except api.Forbidden as error:
        if any(word in error.message for word in ("rateLimitExceeded", "Quota exceeded")):
            raise ThrottledError(f"{what}: {error.message}", code="rateLimitExceeded") from error
        step = f"give whoever runs the sync {permission}; the role roles/compute.viewer has the compute permissions"
        raise PermissionDeniedError(
            f"{permission} is not allowed: {error.message}", code="Forbidden", next_step=step
        ) from error
    except api.TooManyRequests as error:
        raise ThrottledError(f"{what}: {error.message}", code="TooManyRequests") from error
    except (api.NotFound, api.BadRequest) as error:
        step = "check the project's id: `gcloud projects list`"
        raise TemplateError(f"{what}: {error.message}", code=type(error).__name__, next_step=step) from error
    except (api.ServerError, api.RetryError, http.RequestException) as error:
        raise AmbiguousError(f"{what}: {error}", code=type(error).__name__) from error
    except api.GoogleAPICallError as error:
        raise UnclassifiedError(f"{what}: {error}", code=type(error).__name__) from error
