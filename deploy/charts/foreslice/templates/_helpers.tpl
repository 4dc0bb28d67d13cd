{{- define "foreslice.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "foreslice.selectorLabels" -}}
app.kubernetes.io/name: foreslice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "foreslice.labels" -}}
{{ include "foreslice.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "foreslice.serviceAccount" -}}
{{- default (include "foreslice.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "foreslice.image" -}}
{{- with .Values.image -}}
{{- $how := "image.repository is missing, and no image of Foreslice is published: build one with deploy/Dockerfile, push it to a registry of yours (docs/install.md), and give its name, such as --set image.repository=registry.example.com/foreslice" -}}
{{- $repository := required $how .repository -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The settings file: what the chart knows better than a person, under what the values say. */ -}}
{{- define "foreslice.settings" -}}
{{- $catalog := list -}}
{{- range .Values.catalogConfigMaps -}}
{{- $catalog = append $catalog (printf "/etc/foreslice/catalog/%s" .) -}}
{{- end -}}
{{- $own := dict "lease" (dict "name" (include "foreslice.name" .) "namespace" .Release.Namespace) -}}
{{- if $catalog -}}
{{- $_ := set $own "cluster" (dict "catalog" $catalog) -}}
{{- end -}}
{{- if .Values.settings.sync -}}
{{- $_ := set $own "sync" (dict "directory" "/var/lib/foreslice/synced") -}}
{{- end -}}
{{- if .Values.clusterAutoscaler.enabled -}}
{{- $_ := set $own "serve" (dict "externalGrpc" ":8086" "grpcExpander" ":8087") -}}
{{- $files := dict "certificate" "/etc/foreslice/grpc/tls.crt" "key" "/etc/foreslice/grpc/tls.key" -}}
{{- $_ := set $own "grpc" (set $files "clientCa" "/etc/foreslice/grpc/ca.crt") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.settings)) -}}
{{- end -}}

{{- /* The port that a setting of `serve` names, such as 9090 of ":9090"; empty for `off` and for port 0, any free one. */ -}}
{{- define "foreslice.port" -}}
{{- $serve := default dict (include "foreslice.settings" .root | fromYaml).serve -}}
{{- $port := regexFind "[0-9]+$" (get $serve .setting | default .default) | int -}}
{{- if $port }}{{ $port }}{{ end -}}
{{- end -}}
{{- define "foreslice.metricsPort" -}}
{{- include "foreslice.port" (dict "root" . "setting" "metricsAddress" "default" ":8080") -}}
{{- end -}}
{{- define "foreslice.healthPort" -}}
{{- include "foreslice.port" (dict "root" . "setting" "healthAddress" "default" ":8081") -}}
{{- end -}}
{{- define "foreslice.grpcPort" -}}
{{- include "foreslice.port" (dict "root" . "setting" "externalGrpc" "default" "off") -}}
{{- end -}}
{{- define "foreslice.expanderPort" -}}
{{- include "foreslice.port" (dict "root" . "setting" "grpcExpander" "default" "off") -}}
{{- end -}}

{{- /* A provider that may not read its node templates can launch nothing: say so before anything is installed. */ -}}
{{- define "foreslice.providerRights" -}}
{{- $providers := default (list "kwok") (default dict .Values.settings.cluster).providers -}}
{{- if kindIs "string" $providers -}}
{{- $providers = splitList "," (nospace $providers) -}}
{{- end -}}
{{- range $name := list "kwok" "aws" "gcp" -}}
{{- if and (has $name $providers) (not (get $.Values.rbac $name)) -}}
{{- fail (printf "settings.cluster.providers names %s, whose rights in the cluster are off: set rbac.%s=true, or take it out of the providers" $name $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
