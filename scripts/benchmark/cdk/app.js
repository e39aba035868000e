// The stacks that `infra render stack` wrote, as an app for the AWS CDK: the same resources with the same properties, parameters and
// outputs. TEMPLATES names their directory.

const fs = require("node:fs");
const path = require("node:path");
const { App, CfnOutput, CfnParameter, CfnResource, DefaultStackSynthesizer, Stack } = require("aws-cdk-lib");

const app = new App({ analyticsReporting: false });
const directory = process.env.TEMPLATES;
for (const file of fs.readdirSync(directory).sort()) {
  const template = JSON.parse(fs.readFileSync(path.join(directory, file), "utf8"));
  const stack = new Stack(app, path.basename(file, ".json"), {
    // Without this every stack asks for a parameter and a rule of CDK's own.
    synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }),
    description: template.Description,
  });
  for (const [name, parameter] of Object.entries(template.Parameters ?? {})) {
    new CfnParameter(stack, name, { type: parameter.Type, default: parameter.Default, description: parameter.Description });
  }
  for (const [name, { Type, Properties, ...rest }] of Object.entries(template.Resources)) {
    const resource = new CfnResource(stack, name, { type: Type, properties: Properties });
    for (const [key, value] of Object.entries(rest)) {
      resource.addOverride(key, value);
    }
  }
  for (const [name, output] of Object.entries(template.Outputs ?? {})) {
    new CfnOutput(stack, name, { value: output.Value, description: output.Description });
  }
}
app.synth();
