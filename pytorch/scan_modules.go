package pytorch

// moduleClasses are the modules that torch defines in the files of
// torch/nn/modules, by file: those of torch 1.13 and 2.15. Other names that these
// files hold are not theirs, such as F, which is all of torch.nn.functional.
var moduleClasses = map[string]string{
	"torch.nn.modules.activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish " +
		"MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink " +
		"Softsign Tanh Tanhshrink Threshold",
	"torch.nn.modules.adaptive":       "AdaptiveLogSoftmaxWithLoss",
	"torch.nn.modules.batchnorm":      "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
	"torch.nn.modules.channelshuffle": "ChannelShuffle",
	"torch.nn.modules.container":      "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
	"torch.nn.modules.conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d " +
		"LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
	"torch.nn.modules.distance":     "CosineSimilarity PairwiseDistance",
	"torch.nn.modules.dropout":      "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
	"torch.nn.modules.flatten":      "Flatten Unflatten",
	"torch.nn.modules.fold":         "Fold Unfold",
	"torch.nn.modules.instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
	"torch.nn.modules.linear":       "Bilinear Identity LazyLinear Linear NonDynamicallyQuantizableLinear",
	"torch.nn.modules.loss": "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss " +
		"HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss MultiLabelMarginLoss " +
		"MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss " +
		"TripletMarginLoss TripletMarginWithDistanceLoss",
	"torch.nn.modules.module":        "Module",
	"torch.nn.modules.normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
	"torch.nn.modules.padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d " +
		"ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d " +
		"ZeroPad3d",
	"torch.nn.modules.pixelshuffle": "PixelShuffle PixelUnshuffle",
	"torch.nn.modules.pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d " +
		"AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d " +
		"LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
	"torch.nn.modules.rnn":         "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
	"torch.nn.modules.sparse":      "Embedding EmbeddingBag",
	"torch.nn.modules.transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
	"torch.nn.modules.upsampling":  "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}
