import { createReadStream, promises as files } from 'node:fs';
import { createRequire } from 'node:module';
import { getRawAsset, isSea } from 'node:sea';
import type { Readable } from 'node:stream';

/** The files of Swagger UI that the reference needs, by their names; @fastify/swagger-ui holds them without an install script. */
export const viewerFiles = ['swagger-ui.css', 'swagger-ui-bundle.js'] as const;

export type ViewerFile = (typeof viewerFiles)[number];

/** The path of a file of Swagger UI. The single executable has an asset of the same name instead. */
export function viewerPath(name: ViewerFile): string {
  return createRequire(import.meta.url).resolve(`@fastify/swagger-ui/static/${name}`);
}

/** Opens a file of the viewer as a stream. */
export async function openViewerFile(
  name: ViewerFile,
): Promise<{ sizeBytes: number; content: Readable | Buffer }> {
  if (isSea()) {
    const content = Buffer.from(getRawAsset(name));
    return { sizeBytes: content.length, content };
  }
  const path = viewerPath(name);
  const { size } = await files.stat(path);
  return { sizeBytes: size, content: createReadStream(path) };
}
