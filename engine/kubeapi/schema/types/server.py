"""Type table of admissionregistration, apiextensions, authentication, authorization and certificates.

From the API of Kubernetes 1.36. The notation is that of ``parsing``.
"""

from typing import Final

TYPES: Final = """
package admissionregistration
AuditAnnotation = key:1:str!, valueExpression:2:str!
ExpressionWarning = fieldRef:2:str!, warning:3:str!
MatchCondition = name:1:str!, expression:2:str!
MatchResources% = namespaceSelector:1:meta.LabelSelector?, objectSelector:2:meta.LabelSelector?,
  resourceRules:3:[NamedRuleWithOperations], excludeResourceRules:4:[NamedRuleWithOperations],
  matchPolicy:7:str?
MutatingWebhook = name:1:str!, clientConfig:2:WebhookClientConfig!, rules:3:[RuleWithOperations],
  failurePolicy:4:str?, matchPolicy:9:str?, namespaceSelector:5:meta.LabelSelector?,
  objectSelector:11:meta.LabelSelector?, sideEffects:6:str?, timeoutSeconds:7:int32?,
  admissionReviewVersions:8:[str]!, reinvocationPolicy:10:str?,
  matchConditions:12:[MatchCondition/name~name]
MutatingWebhookConfiguration = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  webhooks:2:[MutatingWebhook/name~name]
NamedRuleWithOperations% = resourceNames:1:[str], _:2:RuleWithOperations
ParamKind% = apiVersion:1:str, kind:2:str
ParamRef% = name:1:str, namespace:2:str, selector:3:meta.LabelSelector?, parameterNotFoundAction:4:str?
Rule = apiGroups:1:[str], apiVersions:2:[str], resources:3:[str], scope:4:str?
RuleWithOperations = operations:1:[str], _:2:Rule
ServiceReference = namespace:1:str!, name:2:str!, path:3:str?, port:4:int32?
TypeChecking = expressionWarnings:1:[ExpressionWarning]
ValidatingAdmissionPolicy = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:ValidatingAdmissionPolicySpec, status:3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec = policyName:1:str, paramRef:2:ParamRef?,
  matchResources:3:MatchResources?, validationActions:4:[str/*]
ValidatingAdmissionPolicySpec = paramKind:1:ParamKind?, matchConstraints:2:MatchResources?,
  validations:3:[Validation], failurePolicy:4:str?, auditAnnotations:5:[AuditAnnotation],
  matchConditions:6:[MatchCondition/name~name], variables:7:[Variable/name~name]
ValidatingAdmissionPolicyStatus = observedGeneration:1:int64, typeChecking:2:TypeChecking?,
  conditions:3:[meta.Condition/type]
ValidatingWebhook = name:1:str!, clientConfig:2:WebhookClientConfig!, rules:3:[RuleWithOperations],
  failurePolicy:4:str?, matchPolicy:9:str?, namespaceSelector:5:meta.LabelSelector?,
  objectSelector:10:meta.LabelSelector?, sideEffects:6:str?, timeoutSeconds:7:int32?,
  admissionReviewVersions:8:[str]!, matchConditions:11:[MatchCondition/name~name]
ValidatingWebhookConfiguration = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  webhooks:2:[ValidatingWebhook/name~name]
Validation = expression:1:str!, message:2:str, reason:3:str?, messageExpression:4:str
Variable% = name:1:str!, expression:2:str!
WebhookClientConfig = url:3:str?, service:1:ServiceReference?, caBundle:2:bytes
package apiextensions
CustomResourceColumnDefinition = name:1:str!, type:2:str!, format:3:str, description:4:str,
  priority:5:int32, jsonPath:6:str!
CustomResourceConversion = strategy:1:str!, webhook:2:WebhookConversion?
CustomResourceDefinition = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:CustomResourceDefinitionSpec!, status:3:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition = type:1:str!, status:2:str!, lastTransitionTime:3:time, reason:4:str,
  message:5:str, observedGeneration:6:int64
CustomResourceDefinitionNames = plural:1:str!, singular:2:str, shortNames:3:[str], kind:4:str!,
  listKind:5:str, categories:6:[str]
CustomResourceDefinitionSpec = group:1:str!, names:3:CustomResourceDefinitionNames!, scope:4:str!,
  versions:7:[CustomResourceDefinitionVersion]!, conversion:9:CustomResourceConversion?,
  preserveUnknownFields:10:bool
CustomResourceDefinitionStatus = conditions:1:[CustomResourceDefinitionCondition/type]!,
  acceptedNames:2:CustomResourceDefinitionNames!, storedVersions:3:[str]!, observedGeneration:4:int64
CustomResourceDefinitionVersion = name:1:str!, served:2:bool!, storage:3:bool!, deprecated:7:bool,
  deprecationWarning:8:str?, schema:4:CustomResourceValidation?,
  subresources:5:CustomResourceSubresources?, additionalPrinterColumns:6:[CustomResourceColumnDefinition],
  selectableFields:9:[SelectableField]
CustomResourceSubresourceScale = specReplicasPath:1:str!, statusReplicasPath:2:str!,
  labelSelectorPath:3:str?
CustomResourceSubresourceStatus =
CustomResourceSubresources = status:1:CustomResourceSubresourceStatus?,
  scale:2:CustomResourceSubresourceScale?
CustomResourceValidation = openAPIV3Schema:1:any?
SelectableField = jsonPath:1:str!
ServiceReference = namespace:1:str!, name:2:str!, path:3:str?, port:4:int32?
WebhookClientConfig = url:3:str?, service:1:ServiceReference?, caBundle:2:bytes
WebhookConversion = clientConfig:2:WebhookClientConfig?, conversionReviewVersions:3:[str]!
package authentication
BoundObjectReference = kind:1:str, apiVersion:2:str, name:3:str, uid:4:str
SelfSubjectReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, status:2:SelfSubjectReviewStatus
SelfSubjectReviewStatus = userInfo:1:UserInfo
TokenRequest = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:TokenRequestSpec!,
  status:3:TokenRequestStatus
TokenRequestSpec = audiences:1:[str]!, expirationSeconds:4:int64?, boundObjectRef:3:BoundObjectReference?
TokenRequestStatus = token:1:str!, expirationTimestamp:2:time!
TokenReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, spec:2:TokenReviewSpec!,
  status:3:TokenReviewStatus
TokenReviewSpec = token:1:str, audiences:2:[str]
TokenReviewStatus = authenticated:1:bool, user:2:UserInfo, audiences:4:[str], error:3:str
UserInfo = username:1:str, uid:2:str, groups:3:[str], extra:4:{extra}
package authorization
FieldSelectorAttributes = rawSelector:1:str, requirements:2:[meta.FieldSelectorRequirement]
LabelSelectorAttributes = rawSelector:1:str, requirements:2:[meta.LabelSelectorRequirement]
LocalSubjectAccessReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:SubjectAccessReviewSpec!, status:3:SubjectAccessReviewStatus
NonResourceAttributes = path:1:str, verb:2:str
NonResourceRule = verbs:1:[str]!, nonResourceURLs:2:[str]
ResourceAttributes = namespace:1:str, verb:2:str, group:3:str, version:4:str, resource:5:str,
  subresource:6:str, name:7:str, fieldSelector:8:FieldSelectorAttributes?,
  labelSelector:9:LabelSelectorAttributes?
ResourceRule = verbs:1:[str]!, apiGroups:2:[str], resources:3:[str], resourceNames:4:[str]
SelfSubjectAccessReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:SelfSubjectAccessReviewSpec!, status:3:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec = resourceAttributes:1:ResourceAttributes?,
  nonResourceAttributes:2:NonResourceAttributes?
SelfSubjectRulesReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:SelfSubjectRulesReviewSpec!, status:3:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec = namespace:1:str
SubjectAccessReview = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:SubjectAccessReviewSpec!, status:3:SubjectAccessReviewStatus
SubjectAccessReviewSpec = resourceAttributes:1:ResourceAttributes?,
  nonResourceAttributes:2:NonResourceAttributes?, user:3:str, groups:4:[str], extra:5:{extra}, uid:6:str
SubjectAccessReviewStatus = allowed:1:bool!, denied:4:bool, reason:2:str, evaluationError:3:str
SubjectRulesReviewStatus = resourceRules:1:[ResourceRule]!, nonResourceRules:2:[NonResourceRule]!,
  incomplete:3:bool!, evaluationError:4:str
package metrics
ContainerMetrics = name:1:str!, usage:2:{quantity}!
NodeMetrics = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, timestamp:2:time!, window:3:str!,
  usage:4:{quantity}!
PodMetrics = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta, timestamp:2:time!, window:3:str!,
  containers:4:[ContainerMetrics]!
package certificates
CertificateSigningRequest = apiVersion:str, kind:str, metadata:1:meta.ObjectMeta,
  spec:2:CertificateSigningRequestSpec!, status:3:CertificateSigningRequestStatus
CertificateSigningRequestCondition = type:1:str!, status:6:str!, reason:2:str, message:3:str,
  lastUpdateTime:4:time, lastTransitionTime:5:time
CertificateSigningRequestSpec = request:1:bytes!, signerName:7:str!, expirationSeconds:8:int32?,
  usages:5:[str], username:2:str, uid:3:str, groups:4:[str], extra:6:{extra}
CertificateSigningRequestStatus = conditions:1:[CertificateSigningRequestCondition/type],
  certificate:2:bytes
"""
