# What Foreslice needs in an AWS account: a role for the controller (EKS Pod Identity), policies for whoever checks an
# installation and for whoever buys capacity blocks, and a queue with EC2's notices. docs/aws.md explains the parts.
#
#   terraform apply -var cluster_name=research -var node_role_arn=arn:aws:iam::…:role/nodes \
#     -var cluster_uid="$(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')"

terraform {
  required_version = ">= 1.6"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.60, < 7"
    }
  }
}

variable "cluster_name" {
  type        = string
  description = "Name of the EKS cluster."
}

variable "cluster_uid" {
  type        = string
  description = "Uid of the namespace kube-system: machines carry it as the tag foreslice.dev/cluster."
}

variable "node_role_arn" {
  type        = string
  description = "Role of the nodes, behind the instance profile of the AWSNodeTemplates."
}

variable "namespace" {
  type        = string
  default     = "foreslice-system"
  description = "Where Foreslice is installed."
}

variable "service_account" {
  type        = string
  default     = "foreslice"
  description = "The controller's service account."
}

variable "auto_scaling_groups" {
  type        = list(string)
  default     = []
  description = "Names of the auto-scaling groups that AWSGroupNodeTemplates name, those behind node groups too."
}

variable "volume_key_arns" {
  type        = list(string)
  default     = []
  description = "KMS keys of your own that encrypt volumes: kmsKeyId of blockDevices, or the account's default key."
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
# Version 6 of the provider warns that its name is deprecated; version 5 has nothing else.
data "aws_region" "current" {}

locals {
  names = {
    partition     = data.aws_partition.current.partition
    region        = data.aws_region.current.name
    account       = data.aws_caller_identity.current.account_id
    cluster_name  = var.cluster_name
    cluster_uid   = var.cluster_uid
    node_role_arn = var.node_role_arn
    queue_arn     = aws_sqs_queue.notices.arn
    # These stand between the quotes of a list with one entry.
    group_names = join("\", \"", var.auto_scaling_groups)
    group_arns = join("\", \"", [
      for name in var.auto_scaling_groups :
      "${local.arn_of_groups}:*:autoScalingGroupName/${name}"
    ])
    volume_key_arns = join("\", \"", var.volume_key_arns)
  }
  arn_of_groups = join(":", [
    "arn", data.aws_partition.current.partition, "autoscaling",
    data.aws_region.current.name, data.aws_caller_identity.current.account_id, "autoScalingGroup",
  ])
}

resource "aws_iam_role" "controller" {
  name = "foreslice-${var.cluster_name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_iam_role_policy" "controller" {
  name   = "controller"
  role   = aws_iam_role.controller.id
  policy = templatefile("${path.module}/controller-policy.json", local.names)
}

# The groups by name: else the controller could tag, and then end, a member of any group of the account.
resource "aws_iam_role_policy" "groups" {
  count  = length(var.auto_scaling_groups) > 0 ? 1 : 0
  name   = "groups"
  role   = aws_iam_role.controller.id
  policy = templatefile("${path.module}/groups-policy.json", local.names)
}

# EC2 encrypts a volume with the permissions of whoever launches. The AWS managed key aws/ebs needs none of them; a key of
# your own also has to admit the role in its key policy.
resource "aws_iam_role_policy" "volume_keys" {
  count  = length(var.volume_key_arns) > 0 ? 1 : 0
  name   = "volume-keys"
  role   = aws_iam_role.controller.id
  policy = templatefile("${path.module}/volume-keys-policy.json", local.names)
}

resource "aws_eks_pod_identity_association" "controller" {
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
}

# Nodes that Foreslice starts join with their own role; managed node groups have such an entry already.
resource "aws_eks_access_entry" "nodes" {
  cluster_name  = var.cluster_name
  principal_arn = var.node_role_arn
  type          = "EC2_LINUX"
}

# Attach it to the people who run `foreslice aws check`, `foreslice aws trial` and `foreslice catalog sync`. A dry run needs
# the permission of the launch that it tries, so they could start this cluster's machines; without the statements Try… the
# rest is checked, and there is no trial.
resource "aws_iam_policy" "person" {
  name   = "foreslice-${var.cluster_name}-person"
  policy = templatefile("${path.module}/person-policy.json", local.names)
}

# Attach it to the people who may spend the money. The controller never buys.
resource "aws_iam_policy" "buyer" {
  name   = "foreslice-${var.cluster_name}-buyer"
  policy = templatefile("${path.module}/buyer-policy.json", local.names)
}

resource "aws_sqs_queue" "notices" {
  name                      = "foreslice-${var.cluster_name}"
  message_retention_seconds = 300 # an older notice is useless
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "notices" {
  queue_url = aws_sqs_queue.notices.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.notices.arn
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

# What begins is seen by looking; only ends are worth a message, of which a busy account has many.
locals {
  patterns = {
    notices = jsonencode({
      source = ["aws.ec2", "aws.health"]
      detail-type = [
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Capacity Reservation Instance Interruption Warning",
        "Capacity Block Reservation Delivered",
        "Capacity Block Reservation Expiration Warning",
        "AWS Health Event",
      ]
    })
    ends = jsonencode({
      source      = ["aws.ec2"]
      detail-type = ["EC2 Instance State-change Notification"]
      # "terminated" comes after "shutting-down" and says nothing new.
      detail = { state = ["shutting-down", "stopping"] }
    })
  }
}

resource "aws_cloudwatch_event_rule" "notices" {
  for_each      = local.patterns
  name          = "foreslice-${var.cluster_name}-${each.key}"
  event_pattern = each.value
}

resource "aws_cloudwatch_event_target" "notices" {
  for_each = local.patterns
  rule     = aws_cloudwatch_event_rule.notices[each.key].name
  arn      = aws_sqs_queue.notices.arn
}

output "queue_url" {
  value       = aws_sqs_queue.notices.url
  description = "For the setting aws.queue."
}
