# What Foreslice needs on Google Cloud: its role, the permission for its service account in the cluster to use it, and
# one node pool for DRA as an example. Nothing here creates keys: pods get short-lived credentials by Workload Identity
# Federation, which the cluster (workload_identity_config) and the node pool of the controller (workload_metadata_config)
# must have. `terraform validate` and `terraform plan` accept it with Terraform 1.11 and the resources of the provider
# hashicorp/google 7.45 (2026-08-18); it has not been applied to a project yet.

terraform {
  required_version = ">= 1.6"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8"
    }
  }
}

variable "project" { type = string }
variable "project_number" { type = string }
variable "cluster" { type = string }
variable "location" { type = string }
variable "zones" { type = list(string) }
variable "namespace" {
  type    = string
  default = "foreslice-system"
}
variable "service_account" {
  type    = string
  default = "foreslice"
}

locals {
  role = yamldecode(file("${path.module}/controller-role.yaml"))
}

resource "google_project_iam_custom_role" "controller" {
  project     = var.project
  role_id     = "foreslice"
  title       = local.role.title
  description = local.role.description
  stage       = local.role.stage
  permissions = local.role.includedPermissions
}

resource "google_project_iam_member" "controller" {
  project = var.project
  role    = google_project_iam_custom_role.controller.id
  member = join("", [
    "principal://iam.googleapis.com/projects/${var.project_number}/locations/global/workloadIdentityPools/",
    "${var.project}.svc.id.goog/subject/ns/${var.namespace}/sa/${var.service_account}",
  ])
}

# A pool that Foreslice sizes: no nodes, no autoscaling, no auto-repair, and neither GKE's GPU driver nor its device
# plugin, whose place the DRA driver takes.
resource "google_container_node_pool" "h100" {
  project        = var.project
  cluster        = var.cluster
  location       = var.location
  node_locations = var.zones
  name           = "h100"
  node_count     = 0

  management {
    auto_repair  = false
    auto_upgrade = true
  }

  node_config {
    machine_type = "a3-highgpu-8g"
    spot         = true

    guest_accelerator {
      type  = "nvidia-h100-80gb"
      count = 8
      gpu_driver_installation_config {
        gpu_driver_version = "INSTALLATION_DISABLED"
      }
    }

    labels = {
      # The name of the CapacityPool whose node template names this pool.
      "foreslice.dev/pool"                         = "h100"
      "cloud.google.com/gke-nvidia-gpu-dra-driver" = "true"
      "gke-no-default-nvidia-gpu-device-plugin"    = "true"
      "nvidia.com/gpu.present"                     = "true"
    }
  }

  # Foreslice starts and ends machines, so the count is not Terraform's.
  lifecycle {
    ignore_changes = [node_count, initial_node_count]
  }
}
