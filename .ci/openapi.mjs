// The same questions asked twice of a planner with 16 nodes and rings of 4: through a client
// that a generator made of openapi.json, and by hand, from docs/jobs.md alone.
// node openapi.mjs URL GENERATED generated|by-hand
import { pathToFileURL } from "node:url";

const [url, generated, client] = process.argv.slice(2);
const { Api } = await import(pathToFileURL(generated));

// A client has ask(operation, arguments, query, body, headers) -> {status, data, etag}.
const api = new Api({ baseUrl: url });
const made = async (operation, args, query, body, headers = {}) => {
  const words = [...args, ...(body === undefined ? [] : [body])];
  const asks = api.v1[operation];
  if (!["getDescription", "putRouterJob", "putRouterPort"].includes(operation)) words.push(query ?? {});
  const format = operation === "getJobFile" ? "text" : "json";
  const r = await asks(...words, { headers, format }).catch((e) => e);
  if (!(r instanceof Response)) throw r;
  return { status: r.status, data: r.error ?? r.data, etag: r.headers.get("etag") };
};

const paths = {
  listJobs: ["GET", () => "jobs"], watchJobs: ["GET", () => "events"], getJob: ["GET", (id) => `jobs/${id}`], putJob: ["PUT", (id) => `jobs/${id}`],
  releaseJob: ["DELETE", (id) => `jobs/${id}`], replaceNode: ["POST", (id) => `jobs/${id}/replace`], getJobFile: ["GET", (id, name) => `jobs/${id}/files/${name}`],
  listRouters: ["GET", () => "routers"], getTopology: ["GET", () => "topology"], getDescription: ["GET", () => "openapi.json"],
};
const byHand = async (operation, args, query, body, headers = {}) => {
  const [method, path] = paths[operation];
  const to = new URL(`/v1/${path(...args)}`, url);
  for (const [k, v] of Object.entries(query ?? {})) to.searchParams.set(k, v);
  const r = await fetch(to, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await r.text();
  const json = (r.headers.get("content-type") ?? "").includes("json");
  return { status: r.status, data: json ? JSON.parse(text) : text, etag: r.headers.get("etag") };
};

async function questions(client, ask) {
  let n = 0;
  const job = `${client}-a`, owner = `ci/${client}`;
  const wish = { tp: 16, rings: 1, owner, labels: { client } };
  const want = (what, ok, got) => {
    n++;
    if (!ok) {
      console.error(`${client}: ${what}: ${got.status} ${JSON.stringify(got.data)?.slice(0, 300)}`);
      process.exit(1);
    }
  };
  const refused = async (what, status, field, ...call) => {
    const got = await ask(...call);
    const error = got.data?.error ?? got.data;
    want(what, got.status === status && (!field || error?.field === field), got);
  };
  // until waits for a word of the job's events.
  const until = async (is) => {
    for (let seen = 0, end = Date.now() + 60000; Date.now() < end; ) {
      const { data } = await ask("getJob", [job], { watch: seen, wait_ms: 5000 });
      for (const e of data.events) seen = Math.max(seen, e.number);
      if (is(data)) return data;
    }
    throw new Error(`${client}: ${job} does not come so far in 60 s`);
  };
  let got = await ask("listJobs", [], { owner });
  want("an empty list", got.status === 200 && got.data.jobs.length === 0, got);
  for (let end = Date.now() + 60000; Date.now() < end; await new Promise((go) => setTimeout(go, 100))) {
    got = await ask("putJob", [job], { dry_run: true }, wish);
    if (got.data?.feasible) break; // the agents have come
  }
  want("a dry run", got.status === 200 && got.data.feasible === true, got);
  await refused("nothing was reserved", 404, "id", "getJob", [job]);
  got = await ask("putJob", [job], {}, wish);
  want("a job", got.status < 300 && got.data.id === job && got.data.state !== "released", got);
  got = await ask("putJob", [job], {}, wish);
  want("the same wish again", got.status === 200 && got.data.id === job, got);
  await refused("another wish", 409, "", "putJob", [job], {}, { ...wish, rings: 2 });
  await refused("a key that is not known", 400, "body", "putJob", [`${job}x`], {}, { tpp: 16 });
  await refused("a size that does not divide", 400, "tp", "putJob", [`${job}x`], {}, { tp: 7 });
  await refused("more than there is", 409, "", "putJob", [`${job}x`], {}, { tp: 16, rings: 40 });
  const ready = (await until((d) => d.job.state === "ready")).job;
  want("ready is light", ready.links_confirmed === ready.links && ready.links > 0, { data: ready });
  got = await ask("getJob", [job]);
  want("a revision", /^"\d+"$/.test(got.etag), got);
  const now = got.etag;
  await refused("a job that is not", 404, "id", "getJob", [`${job}x`]);
  await refused("a number that is none", 400, "watch", "getJob", [job], { watch: "x" });
  got = await ask("listJobs", [], { labels: `client=${client}` });
  want("by label", got.data.jobs.length === 1 && got.data.jobs[0].id === job, got);
  got = await ask("listJobs", [], { labels: "client=nobody" });
  want("by a label of none", got.data.jobs.length === 0, got);
  got = await ask("putJob", [`${job}2`], {}, { ...wish });
  want("a second job", got.status < 300, got);
  got = await ask("listJobs", [], { owner, limit: 1 });
  want("a page", got.data.jobs.length === 1 && got.data.continue, got);
  got = await ask("listJobs", [], { owner, limit: 1, continue: got.data.continue });
  want("the last page", got.data.jobs.length === 1 && got.data.jobs[0].id === `${job}2` && !got.data.continue, got);
  await refused("a page of nobody", 400, "limit", "listJobs", [], { limit: 0 });
  got = await ask("getJobFile", [job, "ranks"]);
  want("ranks", got.status === 200 && got.data.split("\n").filter((l) => l && !l.startsWith("#")).length === 16, got);
  got = await ask("getJobFile", [job, "torch_mesh.json"]);
  want("a mesh", got.status === 200 && JSON.stringify(got.data).includes("mesh"), got);
  await refused("a file that is none", 404, "", "getJobFile", [job, "nonsense"]);
  await refused("a file of before", 409, "", "getJobFile", [job, "ranks"], { generation: 1 });
  await refused("another's job", 409, "", "releaseJob", [job], { owner: "ci/else" });
  await refused("a revision of before", 412, "", "releaseJob", [job], { owner }, undefined, { "If-Match": `"1"` });
  await refused("a node that is not of it", 400, "out", "replaceNode", [job], { owner }, { out: 99 });
  const out = ready.rings[0].nodes[0];
  got = await ask("replaceNode", [job], { owner }, { out });
  want("a node replaced", got.status < 300, got);
  const after = (await until((d) => d.job.state === "ready" && !JSON.stringify(d.job.rings[0].nodes).includes(JSON.stringify(out)))).job;
  want("ready without it", after.links_confirmed === after.links, { data: after });
  got = await ask("getTopology", []);
  want("a topology", got.status === 200 && got.data.nodes.length === 16, got);
  await refused("a topology in no words", 400, "format", "getTopology", [], { format: "png" });
  got = await ask("listRouters", []);
  want("routers", got.status === 200 && Array.isArray(got.data.routers), got);
  got = await ask("watchJobs", [], { watch: 0, wait_ms: 0 });
  want("events of all", got.status === 200 && got.data.number > 0 && got.data.events.length > 0, got);
  want("a node's among them", got.data.events.some((e) => e.event === "drained" && e.node === out && !e.job), got);
  got = await ask("getDescription", []);
  want("the description", got.status === 200 && got.data.openapi.startsWith("3.1"), got);
  got = await ask("getJob", [job]);
  got = await ask("releaseJob", [job], { owner }, undefined, { "If-Match": got.etag });
  want("released", got.status === 200 && got.data.state === "released" && got.etag !== now, got);
  got = await ask("releaseJob", [`${job}2`], { owner });
  want("the second, too", got.status === 200, got);
  console.log(`ok      ${client}: ${n} questions`);
}

await questions(client, { generated: made, "by-hand": byHand }[client]);
