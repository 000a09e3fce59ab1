import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { credentialHeaders } from '../../domain/header-names.ts';
import { type Dialect, specification } from '../dialects.ts';
import { type Access, type Route, tags } from '../route.ts';
import { responseHeaders, responsesOf } from './responses.ts';
import { formType, requestOf } from './requests.ts';
import { examples } from '../../wire/examples.ts';
import { describeOperation, type Operation, describeSchemas, namesWithin } from './schemas.ts';

const description = `Checks license keys and counts their uses on the machine of your software.

Bodies are JSON, or forms where the route lists them. A parameter that is sent empty in a form or a query counts as not sent, and so does null in JSON; numbers and booleans may be sent as text. Every error has a stable \`code\`; \`latchkey explain CODE\` explains it.`;

/** Describes the routes in OpenAPI 3.1, from the schemas that validate their requests. */
export function describeRoutes(
  routes: readonly Route[],
  { version, dialect }: { version: string; dialect: Dialect },
): object {
  const { exception } = dialect.refusal;
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route, dialect) };
  }
  const used = new Set<string>(routes.map(({ tag }) => tag));
  return completed(
    createDocument({
      openapi: '3.1.0',
      info: {
        title: 'Latchkey',
        version,
        description: exception === null ? description : `${description} ${exception}`,
        contact: { name: 'The operator of this server' },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/' }],
      tags: Object.entries(tags)
        .filter(([name]) => used.has(name))
        .map(([name, its]) => ({ name, description: its })),
      paths,
      components: {
        headers: responseHeaders,
        securitySchemes: {
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: credentialHeaders.apiKey,
            description: "An account's API key, or a token.",
          },
          productSecret: {
            type: 'apiKey',
            in: 'header',
            name: credentialHeaders.productSecret,
            description: "A product's secret, or a token.",
          },
          bearer: { type: 'http', scheme: 'bearer', description: 'A token.' },
        },
      },
    }) as unknown as Document,
    dialect,
  );
}

type Document = {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  components: { schemas: Readonly<Record<string, unknown>> };
};

/** Adds what zod schemas cannot express: examples, and that null (JSON) or an empty value (form, query) means absent. */
function completed(document: Document, dialect: Dialect): object {
  const { paths, components } = document;
  const { schemas } = components;
  const bodies = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .map(({ requestBody }) => requestBody?.content ?? {});
  const ofType = (type: string): Set<string> =>
    namesWithin(
      bodies.map((content) => content[type]),
      schemas,
    );
  const names = { json: ofType('application/json'), form: ofType(formType) };
  return {
    ...document,
    paths: mapValues(paths, (path, operations) =>
      mapValues(operations, (_, operation) => {
        // The examples of /api are in the dialect of the specification.
        const isOther = dialect !== specification && path.startsWith('/api/');
        return describeOperation(operation, isOther ? undefined : examples[operation.operationId]);
      }),
    ),
    components: { ...components, schemas: describeSchemas(schemas, names) },
  };
}

function mapValues<Value, Other>(
  values: Readonly<Record<string, Value>>,
  change: (name: string, value: Value) => Other,
): Record<string, Other> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(name, value)]));
}

function describe(route: Route, dialect: Dialect): ZodOpenApiOperationObject {
  const { refusal = (route.path.startsWith('/api/') ? dialect : specification).refusal } = route;
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: conditionsOf(route),
    security: security(route.access),
    ...requestOf(route),
    responses: responsesOf(route, refusal),
  };
}

/** Who may call a route, and where. */
function conditionsOf(route: Route): string {
  const { access, operatorOnly, roles = [] } = route;
  const sentences = [
    neededCredential(access),
    ...(route.isOpen === undefined ? [] : ['The configuration can open it to anyone.']),
    ...(operatorOnly === true ? ['A credential of a single account is refused.'] : []),
    ...(roles.join() === 'authority' ? ['An agent refuses it: its upstream has the catalogue.'] : []),
  ];
  return sentences.join(' ');
}

/** Scopes are in the description: only OAuth schemes can list them here. */
function security(access: Access): Record<string, string[]>[] {
  if (access === 'anyone') return [];
  return [
    ...(access.credential === 'product_secret' ? [] : [{ apiKey: [] }]),
    ...(access.credential === 'api_key' ? [] : [{ productSecret: [] }]),
    { bearer: [] },
  ];
}

function neededCredential(access: Access): string {
  if (access === 'anyone') return 'Needs no credential.';
  if (access.scope === null) return 'Needs any valid credential.';
  return `Needs a credential with the scope \`${access.scope}\`.`;
}
