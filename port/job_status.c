/* job_status.c - a line of text for every status of a completion. May not format, allocate or print. */
#include "k3huf_job.h"

#include "k3huf.h"

const char *k3huf_job_status_text(uint32_t status) {
    if (status < K3HUF_STATUS_COUNT) { return k3huf_status_text((enum k3huf_status)status); }
    if (status < K3HUF_JOB_E_CONTROL || status >= K3HUF_JOB_STATUS_END) { return "unknown status"; }
    switch ((enum k3huf_job_status)status) {
    case K3HUF_JOB_E_CONTROL: return "the window's control block is not one";
    case K3HUF_JOB_E_RING: return "a ring's bookkeeping is impossible";
    case K3HUF_JOB_E_COMPLETIONS: return "the host did not take completions in time";
    case K3HUF_JOB_E_KIND: return "unknown kind of job";
    case K3HUF_JOB_E_OPTIONS: return "unknown options";
    case K3HUF_JOB_E_SOURCE: return "the source is not wholly on the drive";
    case K3HUF_JOB_E_DESTINATION: return "the destination is not wholly in the window";
    case K3HUF_JOB_E_OVERLAP: return "the destination overlaps the control block or a ring";
    case K3HUF_JOB_E_DESTINATION_SMALL: return "the destination is too small";
    case K3HUF_JOB_E_NOT_FOUND: return "no job to cancel under this id";
    case K3HUF_JOB_E_CANCELLED: return "cancelled";
    case K3HUF_JOB_E_BLOCK_SIZE: return "the index's blocks are larger than the firmware's buffers";
    case K3HUF_JOB_E_NO_INDEX: return "a stripe has no block index";
    case K3HUF_JOB_E_TABLE: return "there is no sound table of contents";
    case K3HUF_JOB_E_ABSENT: return "there is no drive";
    case K3HUF_JOB_E_READ: return "the drive cannot read a logical block";
    case K3HUF_JOB_E_READ_TIMEOUT: return "the drive did not answer in time";
    case K3HUF_JOB_E_DRIVE: return "the drive or its controller failed";
    case K3HUF_JOB_E_WINDOW: return "host memory cannot be written";
    case K3HUF_JOB_E_PART: return "the source has no such bytes";
    case K3HUF_JOB_STATUS_END: break;
    }
    return "unknown status";
}
