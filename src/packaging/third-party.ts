import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a lock file says of a package that is installed; those for development are not in the bundle. */
type Locked = { version: string; license?: string; dev?: boolean; devOptional?: boolean };

/** What @fastify/swagger-ui holds of another's, without its notice. */
const swaggerUi = `--- Swagger UI, within @fastify/swagger-ui (Apache-2.0; its text: reflect-metadata, above)

swagger-ui
Copyright 2020-2021 SmartBear Software Inc.`;

/** The license notices of the Node.js that the executable holds. Its package has it only where npm ran its script. */
export function nodeNotice(root: string): string {
  const folder = `node_modules/node/node_modules/node-${process.platform}-${process.arch}`;
  // npm removes it again with each npm install.
  if (!existsSync(join(root, folder)))
    throw new Error(`there is no ${folder}, which holds the license of Node.js: npm ci brings it`);
  return notice(`Node.js ${process.version}`, join(root, folder));
}

/** The license notices of the packages of npm that the bundle holds. */
export function thirdPartyNotices(root: string): string {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  const shipped = Object.entries(packages).filter(
    ([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true,
  );
  return [
    ...shipped.map(([path, { version, license }]) =>
      notice(`${path.split('node_modules/').at(-1)} ${version} (${license})`, join(root, path)),
    ),
    swaggerUi,
  ].join('\n\n');
}

function notice(title: string, folder: string): string {
  const names = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name));
  const texts = names.map((name) => readFileSync(join(folder, name), 'utf8').trim());
  return [`--- ${title}`, ...texts].join('\n\n');
}
