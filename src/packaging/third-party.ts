import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @fastify/swagger-ui includes Swagger UI without its notice. */
const swaggerUi = `--- Swagger UI, within @fastify/swagger-ui (Apache-2.0: see the license of reflect-metadata above)

swagger-ui
Copyright 2020-2021 SmartBear Software Inc.`;

/** The license of the Node.js in the executable. The npm package `node` has it only after its install script ran. */
export function nodeNotice(root: string): string {
  const folder = `node_modules/node/node_modules/node-${process.platform}-${process.arch}`;
  // `npm install` removes the folder, and `npm ci` creates it.
  if (!existsSync(join(root, folder)))
    throw new Error(`there is no ${folder}, which holds the license of Node.js: npm ci brings it`);
  return notice(`Node.js ${process.version}`, join(root, folder));
}

/** The license notices of the npm packages that have these modules, and of Swagger UI. */
export function thirdPartyNotices(root: string, modules: readonly string[]): string {
  const viewer = join(root, 'node_modules/@fastify/swagger-ui/package.json');
  return `${noticesOf([...modules, viewer])}\n\n${swaggerUi}`;
}

/** The license notices of the npm packages that have these modules. */
export function noticesOf(modules: readonly string[]): string {
  const folders = modules.flatMap(
    (path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  );
  const notices = [...new Set(folders)].map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    ) as Manifest;
    return notice(`${name} ${version} (${license})`, folder);
  });
  return notices.sort().join('\n\n');
}

type Manifest = { name: string; version: string; license: string };

function notice(title: string, folder: string): string {
  const names = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name));
  const texts = names.map((name) => readFileSync(join(folder, name), 'utf8').trim());
  return [`--- ${title}`, ...texts].join('\n\n');
}
